/* gsm_mpi.c - MPI's messages as the network of C's tasks (c/gsm_mpi.c), which this
 * program is built with: rank 0 sends bulk packets and then one of the control class;
 * rank 1, which looks when all are there, finds that one first, and the others in
 * their order. Prints "ok" if so.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "gsm_job.h"

enum { CONTROL, BULK, PACKETS = 3 };

struct ek_mpi ek_mpi;

int ek_gsm_agree(MPI_Comm comm, int mine)
{
	int all = mine;
	MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, comm);
	return all;
}

static int wrong;

static void expect(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "gsm_mpi: %s\n", what);
	wrong = 1;
}

static void send_packet(const struct ek_gsm_mpi *m, uint32_t class, uint32_t slot, const char *text)
{
	expect(m->send(m->context, class, slot, 1, (uint8_t)(10 + slot), text, strlen(text)) == MPI_SUCCESS, "a send fails");
}

/* The next packet of a class; a null text: there is none. */
static void receive_packet(const struct ek_gsm_mpi *m, uint32_t class, uint32_t slot, const char *text)
{
	unsigned char buffer[EK_GSM_LONGEST] = {0};
	uint32_t source = 0xffff;
	uint64_t bytes = 0;
	int found = 0;
	for (int looks = 0; !found && looks < (text ? 1 << 30 : 100); looks++)
		expect(m->find(m->context, class, &source, &bytes, &found) == MPI_SUCCESS, "a look fails");
	expect(found == (text != 0), text ? "a packet is missing" : "there is one too many");
	if (!found || !text)
		return;
	expect(source == 0 && bytes == strlen(text) + 1, "its source or length is wrong");
	expect(m->receive(m->context, buffer, bytes) == MPI_SUCCESS, "a receive fails");
	expect(buffer[0] == 10 + slot && memcmp(buffer + 1, text, strlen(text)) == 0, "it is another packet");
}

int main(int argc, char **argv)
{
	static struct ek_gsm job;
	static const char *const bulk[PACKETS] = {"first", "second", "the third of them"};
	char text[EK_GSM_TEXT] = "";
	int rank, level, over = 0;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	ek_mpi.Query_thread = MPI_Query_thread;
	ek_mpi.Comm_dup = MPI_Comm_dup;
	ek_mpi.Isend = MPI_Isend;
	ek_mpi.Test = MPI_Test;
	ek_mpi.Improbe = MPI_Improbe;
	ek_mpi.Mrecv = MPI_Mrecv;
	ek_mpi.Get_count = MPI_Get_count;
	ek_mpi.type_byte = MPI_BYTE;
	job.comm = MPI_COMM_WORLD;
	const struct ek_gsm_mpi m = ek_gsm_mpi_of(&job);
	expect(m.open(m.context, text) == EK_OK, text);
	if (rank == 0) {
		for (uint32_t i = 0; i < PACKETS; i++)
			send_packet(&m, BULK, i, bulk[i]);
		send_packet(&m, CONTROL, 0, "control");
		MPI_Send(0, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		for (uint32_t i = 0; i <= PACKETS; i++)
			for (over = 0; !over;)
				expect(m.sent(m.context, i < PACKETS ? BULK : CONTROL, i % PACKETS, &over) == MPI_SUCCESS, "a send fails later");
	} else {
		MPI_Recv(0, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		receive_packet(&m, CONTROL, 0, "control");
		receive_packet(&m, CONTROL, 0, 0);
		for (uint32_t i = 0; i < PACKETS; i++)
			receive_packet(&m, BULK, i, bulk[i]);
		receive_packet(&m, BULK, 0, 0);
	}
	int all = ek_gsm_agree(MPI_COMM_WORLD, wrong);
	if (rank == 0 && !all)
		puts("ok");
	MPI_Finalize();
	return all;
}
