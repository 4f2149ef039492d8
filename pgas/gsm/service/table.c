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

static int put_strided(uint64_t end, struct ek_gsm_address to, uint64_t to_step, const void *data, uint64_t step,
                       uint64_t bytes, uint64_t count)
{
	return ekGsmPutStrided(end, to, to_step, (void *)data, step, bytes, count);
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
		.put_strided = put_strided,
	};
	return &table;
}
