/* gsm_mpi.c - MPI's messages as a network between the tasks of a job: the calls by
 * which the Go side (runtime/fabric/messages) sends and receives packets.
 *
 * They come from the runtime's threads, while the program's own call MPI: so MPI
 * must have been started with MPI_THREAD_MULTIPLE. Communicator and slots stay
 * until MPI ends, since a send to a task that died may never be over.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evenkeel.h"
#include "gsm_job.h"
#include "process.h"

struct ek_gsm_sends {
	MPI_Comm comm;
	MPI_Message found;
	struct slot {
		MPI_Request request;
		unsigned char message[EK_GSM_LONGEST];
	} slots[EK_GSM_CLASSES][EK_GSM_SENDS];
};

static int open_messages(void *context, char *text)
{
	struct ek_gsm *job = context;
	int level = MPI_THREAD_SINGLE;
	if (ek_mpi.Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_MULTIPLE) {
		snprintf(text, EK_GSM_TEXT, "MPI as the network needs MPI_THREAD_MULTIPLE, since a thread of the runtime sends and "
		         "receives while the program calls MPI: start it by MPI_Init_thread with that, or set OMPI_MPI_THREAD_LEVEL=3");
		level = MPI_THREAD_SINGLE;
	}
	job->sends = malloc(sizeof *job->sends);
	int result = ek_gsm_agree(job->comm, level < MPI_THREAD_MULTIPLE ? EK_GSM_UNREACHABLE : job->sends ? EK_OK : EK_GSM_NO_MEMORY);
	if (result == EK_OK && ek_mpi.Comm_dup(job->comm, &job->sends->comm) == MPI_SUCCESS)
		return EK_OK;
	if (!*text)
		snprintf(text, EK_GSM_TEXT, "MPI as the network: %s",
		         result == EK_OK ? "MPI has no further communicator" : "another task can't, or there is no memory");
	free(job->sends);
	job->sends = 0;
	return EK_GSM_UNREACHABLE;
}

static int send_message(void *context, uint32_t class, uint32_t slot, uint32_t to, uint8_t path, const void *data, uint64_t bytes)
{
	struct ek_gsm_sends *sends = ((struct ek_gsm *)context)->sends;
	struct slot *s = &sends->slots[class][slot];
	s->message[0] = path;
	memcpy(s->message + 1, data, bytes);
	return ek_mpi.Isend(s->message, (int)bytes + 1, ek_mpi.type_byte, (int)to, (int)class, sends->comm, &s->request);
}

static int sent(void *context, uint32_t class, uint32_t slot, int *over)
{
	struct ek_gsm_sends *sends = ((struct ek_gsm *)context)->sends;
	return ek_mpi.Test(&sends->slots[class][slot].request, over, MPI_STATUS_IGNORE);
}

static int find_message(void *context, uint32_t class, uint32_t *source, uint64_t *bytes, int *found)
{
	struct ek_gsm_sends *sends = ((struct ek_gsm *)context)->sends;
	MPI_Status status;
	int length = 0, result = ek_mpi.Improbe(MPI_ANY_SOURCE, (int)class, sends->comm, found, &sends->found, &status);
	if (result != MPI_SUCCESS || !*found)
		return result;
	result = ek_mpi.Get_count(&status, ek_mpi.type_byte, &length);
	*source = (uint32_t)status.MPI_SOURCE;
	*bytes = (uint64_t)length;
	return result;
}

static int receive(void *context, void *buffer, uint64_t bytes)
{
	struct ek_gsm_sends *sends = ((struct ek_gsm *)context)->sends;
	return ek_mpi.Mrecv(buffer, (int)bytes, ek_mpi.type_byte, &sends->found, MPI_STATUS_IGNORE);
}

struct ek_gsm_mpi ek_gsm_mpi_of(struct ek_gsm *job)
{
	return (struct ek_gsm_mpi){
		.context = job, .open = open_messages, .send = send_message, .sent = sent, .find = find_message, .receive = receive};
}
