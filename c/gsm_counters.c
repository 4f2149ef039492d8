#include "gsm_counters.h"

#include "process.h"

EK_EXPORT struct ek_window *ek_gsm_row(uint32_t job, uint32_t window)
{
	if (EK_LOAD(ek.mode) != EK_RECORDING)
		return 0;
	pthread_mutex_lock(&ek.lock);
	const uint32_t used = ek.rank->windows, last = EK_WINDOWS - 1;
	struct ek_window *row = &ek.windows[used < last ? used : last];
	row->job = used < last ? job : 0;
	row->number = used < last ? window : 0;
	if (used <= last)
		EK_PUBLISH(ek.rank->windows, used + 1);
	pthread_mutex_unlock(&ek.lock);
	return row;
}

EK_EXPORT void ek_gsm_show_row(struct ek_window *row, const struct ek_gsm_counters *now, struct ek_gsm_counters *told)
{
	if (!row || EK_LOAD(ek.mode) != EK_RECORDING)
		return;
	const bool own = row->number != 0; /* else it is several windows' */
#define SHOW(counter)                                                                                          \
	do {                                                                                                   \
		if (own)                                                                                       \
			EK_STORE(row->counter, now->counter);                                                  \
		else                                                                                           \
			__atomic_fetch_add(&row->counter, now->counter - told->counter, __ATOMIC_RELAXED);     \
	} while (0)
	SHOW(puts);
	SHOW(put_bytes);
	SHOW(gets);
	SHOW(get_bytes);
	SHOW(atomics);
	SHOW(refused);
	SHOW(fences);
#undef SHOW
	*told = *now;
}

EK_EXPORT void ek_gsm_show_foreign(uint32_t more)
{
	if (EK_LOAD(ek.mode) == EK_RECORDING)
		__atomic_fetch_add(&ek.rank->foreign, more, __ATOMIC_RELAXED);
}
