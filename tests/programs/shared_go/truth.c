/* What truth_write.c asks for: all calls are barriers. */
#include "../truth_write.c"

enum kind truth_kind(const struct truth *t, int call)
{
	(void)t, (void)call;
	return TO_ALL;
}

int truth_root(const struct truth *t, int call)
{
	(void)t, (void)call;
	return 0;
}
