/* The table of c/gsm_network.h. */
#include "gsm_network.h"
#include "_cgo_export.h"

static uint64_t join(const struct ek_gsm_membership *member, char *text)
{
	return ekGsmJoin((void *)member, text);
}

static void wait_for(uint64_t end, struct ek_gsm_command *command)
{
	ekGsmWait(end, command);
}

static int add_key(uint64_t end, uint32_t number, uint64_t token, const void *secret)
{
	return ekGsmAddKey(end, number, token, (void *)secret);
}

const struct ek_gsm_network *ek_gsm_network_table(void)
{
	static const struct ek_gsm_network table = {
		.version = EK_GSM_NETWORK_VERSION,
		.size = sizeof(struct ek_gsm_network),
		.join = join,
		.leave = ekGsmLeave,
		.wait = wait_for,
		.poll = ekGsmPoll,
		.strided = ekGsmStrided,
		.add_key = add_key,
		.remove_key = ekGsmRemoveKey,
	};
	return &table;
}
