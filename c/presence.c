/* presence.c - see presence.h. */
#include "presence.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "next.h"
#include "process.h"

/* Of pmix_common.h, as it has been since PMIx 2. */
enum { PMIX_SUCCESS = 0, PMIX_GLOBAL = 3, PMIX_BOOL = 1, NAME = 256, KEY = 512 };
struct value {
	uint16_t type;
	union {
		bool flag;
		uint64_t largest[3];
	} data;
};
struct info {
	char key[KEY];
	uint32_t flags;
	struct value value;
};
struct process {
	char name_space[NAME];
	uint32_t rank;
};

EK_EXPORT int PMIx_Commit(void);

static const char word[] = "evenkeel.enabled";
static bool announces, enabled, said;

void ek_presence_announce(bool is_enabled)
{
	announces = true;
	enabled = is_enabled;
}

/* MPI_Init calls it when it has put in all that it has to tell. */
int PMIx_Commit(void)
{
	static int (*next)(void);
	if (!next)
		*(void **)&next = ek_next_late("PMIx_Commit", (void **)&next);
	int (*put)(uint8_t, const char *, struct value *);
	*(void **)&put = ek_next_data("PMIx_Put");
	struct value value = {.type = PMIX_BOOL, .data.flag = enabled};
	if (announces && put)
		said = put(PMIX_GLOBAL, word, &value) == PMIX_SUCCESS;
	return next();
}

struct ek_presence ek_presence_look(int size)
{
	int (*get)(const struct process *, const char *, const struct info *, size_t, struct value **);
	/* What the node's daemon has not got by now, nobody will say. */
	const struct info at_once = {.key = "pmix.immediate", .value = {.type = PMIX_BOOL, .data.flag = true}};
	struct ek_presence p = {.enabled = true, .first = -1, .missing = -1};
	struct process process;
	const char *name_space = getenv("PMIX_NAMESPACE");
	*(void **)&get = ek_next_data("PMIx_Get");
	if (!said || !get || !name_space)
		return p;
	snprintf(process.name_space, sizeof process.name_space, "%s", name_space);
	for (int rank = 0; rank < size; rank++) {
		struct value *value = 0;
		process.rank = (uint32_t)rank;
		if (get(&process, word, &at_once, 1, &value) == PMIX_SUCCESS && value) {
			p.enabled = p.enabled && value->data.flag;
			if (p.first < 0)
				p.first = rank;
			free(value);
		} else if (p.absent++ == 0) {
			p.missing = rank;
		}
	}
	p.known = p.absent < size; /* we have said it */
	return p;
}
