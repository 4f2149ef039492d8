/* gsm.h - what global shared memory tells the rest of the library. */
#ifndef EK_GSM_H
#define EK_GSM_H

/* A sentence for a result of evenkeel_gsm.h; null: it is none. */
const char *ek_gsm_strerror(int result);

#endif
