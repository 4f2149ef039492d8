#include "exchange.h"

#include <stdlib.h>

bool ek_exchange_new(struct exchange *e, int size)
{
	e->times = malloc((size_t)size * sizeof *e->times);
	e->order = malloc((size_t)size * sizeof *e->order);
	return e->times && e->order;
}

void ek_exchange_free(struct exchange *e)
{
	free(e->times);
	free(e->order);
	e->times = 0;
	e->order = 0;
}

/* In the step of distance d: all that is known of the d nodes from this one on
 * goes to the node d before, and as much comes from the node d after. */
void ek_exchange_plan(struct exchange *e, const struct node_of_comm *nodes, int node_count, int mine,
                      const int *members, const int *node_of, int size)
{
	int at = 0;
	for (int i = 0; i < node_count; i++)
		for (int rank = 0; rank < size; rank++)
			if (node_of[rank] == (mine + i) % node_count)
				e->order[at++] = rank;
	e->here = nodes[mine].count;
	e->steps = 0;
	int have = e->here;
	for (int distance = 1; distance < node_count; distance *= 2) {
		int blocks = distance < node_count - distance ? distance : node_count - distance;
		int send = 0, receive = 0;
		for (int i = 0; i < blocks; i++) {
			send += nodes[(mine + i) % node_count].count;
			receive += nodes[(mine + distance + i) % node_count].count;
		}
		e->step[e->steps++] = (struct step){
			.to = members[nodes[(mine - distance + node_count) % node_count].leader],
			.from = members[nodes[(mine + distance) % node_count].leader],
			.send = send, .at = have, .receive = receive};
		have += receive;
	}
}

/* Between two leaders the messages of one tag follow each other as the barriers
 * do, also those of another communicator that takes up the tag later. */
int ek_exchange(const struct exchange *e, int tag, MPI_Comm comm)
{
	for (int i = 0; i < e->steps; i++) {
		const struct step *s = &e->step[i];
		int result = ek_mpi.Sendrecv(e->times, s->send, ek_mpi.type_uint64, s->to, tag, e->times + s->at, s->receive,
		                             ek_mpi.type_uint64, s->from, tag, comm, MPI_STATUS_IGNORE);
		if (result != MPI_SUCCESS)
			return result;
	}
	return MPI_SUCCESS;
}
