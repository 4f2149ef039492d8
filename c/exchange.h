/* exchange.h - the leaders of several nodes tell each other when the ranks of
 * their nodes arrived, which is more than to know that all have: the steps of a
 * dissemination barrier, carrying what Bruck's allgather carries.
 */
#ifndef EK_EXCHANGE_H
#define EK_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "next.h"

/* A node that has members of a communicator: its number, the lowest of their
 * ranks, and how many they are. */
struct node_of_comm {
	int node, leader, count;
};

/* One step of the exchange between leaders, in words of `times`. */
struct step {
	int to, from; /* world ranks */
	int send;     /* the first words go out, */
	int at, receive; /* and these come in */
};

struct exchange {
	uint64_t *times; /* arrivals in the order of the exchange: this node's first */
	int *order;      /* whose they are, by rank of the communicator */
	int here;        /* how many are this node's */
	int steps;
	struct step step[32];
};

/* Makes room for `size` ranks; false if there is none. */
bool ek_exchange_new(struct exchange *exchange, int size);
void ek_exchange_free(struct exchange *exchange);

/* Plans it for node `mine` of the nodes, which are listed alike everywhere.
 * `members` are world ranks, `node_of` says which of the nodes each is on. */
void ek_exchange_plan(struct exchange *exchange, const struct node_of_comm *nodes, int node_count, int mine,
                      const int *members, const int *node_of, int size);

/* With this node's times in place; afterwards all are. Returns what MPI does. */
int ek_exchange(const struct exchange *exchange, int tag, MPI_Comm comm);

#endif
