/*
 * The epochs of one directed pair of tasks (pgas/gsm/epoch), for the model checker spin.
 *
 * The initiator has two operations: sequence 0 is a PUT of two packets, sequence 1 an atomic. It takes any loss for a
 * timeout that raises the epoch (Config.Repairs 0). The network is as bad as one can be: what has been sent may arrive
 * at any time, any number of times, or never; so it is a set of packets that only grows. Whoever sends a packet again
 * under its number changes nothing in it: selective repair is in the model too.
 *
 * Packets have numbers that start again with each epoch, in the order of sending: atomics first, for they are of the
 * control class. So the same number stands for different packets in different epochs, which is what makes old ones
 * dangerous.
 *
 * What must never happen is an assert. Variants that leave out a part of the protocol are made by -D:
 *   OLD_PACKETS  the target takes packets of any epoch
 *   OLD_ANSWERS  the initiator takes acknowledgements of any epoch
 *   LATE_CLEAR   the target confirms an epoch before it has cleared what belonged to the old one
 *   UNCONFIRMED  no epoch is confirmed: the initiator goes on at once, and the target takes a new epoch from any packet
 *   FORGET       the target forgets with the epoch which atomics it has executed
 *   NO_COUNT     the target takes a PUT for complete with its first packet
 *
 * Every step that Go can take is printed; tests/model replays random runs on the Go state machines.
 */

#ifndef EPOCHS
#define EPOCHS 3 /* epochs are 1 to EPOCHS, 2 to 4; the initiator has no more timeouts then */
#endif
#define NONE 7

/* The network: everything that was ever sent, by epoch. */
bool net_raise[EPOCHS + 1];
bool floor_raise[EPOCHS + 1];       /* the PUT had had its notification when it was sent */
bool net_confirm[2 * (EPOCHS + 1)]; /* + EPOCHS + 1: it says that the PUT is done */
bool net_put[2 * (EPOCHS + 1)];     /* + EPOCHS + 1: its second packet */
bool net_atomic[EPOCHS + 1];
bool net_answer[EPOCHS + 1];
bool net_ack[8 * (EPOCHS + 1)];     /* 8 * epoch + numbers that have arrived */
byte number_put[2 * (EPOCHS + 1)];  /* what the packets carry */
byte number_atomic[EPOCHS + 1];
bool floor_atomic[EPOCHS + 1];      /* as floor_raise */

/* The initiator. */
byte i_epoch = 1;
bool i_raising = true;
byte i_next;             /* the next number */
byte i_number[3] = NONE; /* of the PUT's packets and of the atomic, in this epoch */
bool i_acked[2];         /* packets of the PUT, in this epoch */
byte put_notified, atomic_notified;

/* The target. */
byte t_epoch;
byte t_numbers;   /* that have arrived in this epoch */
byte t_got;       /* packets of the PUT, in this epoch */
bool t_done;      /* the PUT */
bool t_floor;     /* knows that the PUT has had its notification */
bool t_clear;     /* LATE_CLEAR: it has still to clear */
bool t_executed;  /* the atomic, as the target remembers it */

/* What really happened. */
byte executions;      /* of the atomic */
bool written[2];      /* packets of the PUT */

#define IN_FLIGHT ((i_number[0] != NONE && !i_acked[0] && !put_notified) || \
                   (i_number[1] != NONE && !i_acked[1] && !put_notified) || \
                   (i_number[2] != NONE && !atomic_notified))

inline start_epoch() {
	i_next = 0;
	i_number[0] = NONE; i_number[1] = NONE; i_number[2] = NONE;
	i_acked[0] = false; i_acked[1] = false
}

inline clear() {
	t_numbers = 0;
	t_got = 0;
#ifdef FORGET
	t_executed = false;
#endif
	t_clear = false
}

/* All alike likely, which matters for random runs. */
inline some_epoch() {
	if
	:: e = 1
	:: e = 2
#if EPOCHS > 2
	:: e = 3
#endif
#if EPOCHS > 3
	:: e = 4
#endif
	fi
}

/* The target sees a packet of an epoch: ok if it takes it. */
#if defined(OLD_PACKETS)
#define TAKES(e) (t_epoch != 0)
#elif defined(UNCONFIRMED)
#define TAKES(e) ((e) >= t_epoch)
#else
#define TAKES(e) ((e) == t_epoch)
#endif

#ifdef UNCONFIRMED
#define ADOPT(e) t_epoch = (e)
#else
#define ADOPT(e) skip
#endif

#ifdef OLD_ANSWERS
#define CURRENT(e) (!i_raising)
#else
#define CURRENT(e) (!i_raising && (e) == i_epoch)
#endif

inline put_arrives(e, p) {
	printf("put %d %d: ", e, p);
	if
	:: !TAKES(e) -> printf("stale\n")
	:: else ->
		ADOPT(e);
		n = number_put[p * (EPOCHS + 1) + e];
		if
		:: t_floor -> printf("late\n")
		:: !t_floor && ((t_numbers >> n) & 1 || t_done) ->
			t_numbers = t_numbers | (1 << n);
			net_ack[8 * t_epoch + t_numbers] = true;
			printf("repeated ack %d\n", t_numbers)
		:: else ->
			assert(!put_notified); /* nothing of a PUT is executed after its notification, */
			assert(!t_done);       /* or after the target was told that it is complete */
			written[p] = true;
			t_numbers = t_numbers | (1 << n);
			t_got++;
#ifdef NO_COUNT
			t_done = true;
#else
			t_done = (t_got == 2);
#endif
			if
			:: t_done -> assert(written[0] && written[1]) /* complete is complete */
			:: else
			fi;
			net_ack[8 * t_epoch + t_numbers] = true;
			printf("executed ack %d\n", t_numbers)
		fi
	fi
}

inline atomic_arrives(e) {
	printf("atomic %d: ", e);
	if
	:: !TAKES(e) -> printf("stale\n")
	:: else ->
		ADOPT(e);
		t_floor = t_floor || floor_atomic[e];
		t_numbers = t_numbers | (1 << number_atomic[e]);
		if
		:: t_executed -> printf("repeated answer\n")
		:: else ->
			t_executed = true;
			executions++;
			assert(executions == 1);
			printf("executed answer\n")
		fi;
		net_answer[t_epoch] = true
	fi
}

inline raise_arrives(e) {
	printf("raise %d: ", e);
	if
	:: e < t_epoch -> printf("stale\n")
	:: else ->
		t_floor = t_floor || floor_raise[e];
		if
		:: e > t_epoch ->
			t_epoch = e;
#ifdef LATE_CLEAR
			t_clear = true;
#else
			clear();
#endif
			printf("executed confirm %d\n", t_done && !t_floor)
		:: else -> printf("repeated confirm %d\n", t_done && !t_floor)
		fi;
		net_confirm[(t_done && !t_floor) * (EPOCHS + 1) + e] = true
	fi
}

/* A PUT is finished by the acknowledgement of both its packets. */
inline ack_arrives(e, mask) {
	printf("ack %d %d: ", e, mask);
	if
	:: !CURRENT(e) -> printf("stale\n")
	:: else ->
		if
		:: i_number[0] != NONE && !i_acked[0] && !put_notified && (mask >> i_number[0]) & 1 -> i_acked[0] = true; k = true
		:: else
		fi;
		if
		:: i_number[1] != NONE && !i_acked[1] && !put_notified && (mask >> i_number[1]) & 1 -> i_acked[1] = true; k = true
		:: else
		fi;
		if
		:: !k -> printf("repeated\n")
		:: k && i_acked[0] && i_acked[1] ->
			put_notified++;
			assert(put_notified == 1);
			assert(written[0] && written[1]);
			printf("notified\n")
		:: else -> printf("accepted\n")
		fi
	fi
}

inline answer_arrives(e) {
	printf("answer %d: ", e);
	if
	:: !CURRENT(e) -> printf("stale\n")
	:: else ->
		if
		:: atomic_notified -> printf("repeated\n")
		:: else ->
			atomic_notified++;
			assert(executions == 1);
			printf("notified\n")
		fi
	fi
}

inline confirm_arrives(e, done) {
	printf("confirm %d %d: ", e, done);
	if
	:: !(i_raising && e == i_epoch) -> printf("stale\n")
	:: else ->
		i_raising = false;
		if
		:: done && !put_notified ->
			put_notified++;
			assert(written[0] && written[1]);
			printf("notified\n")
		:: else -> printf("accepted\n")
		fi
	fi
}

active proctype pair() {
	byte n, e;
	bool k;
	printf("send raise 1\n");
	net_raise[1] = true;
end:	do
	/* The initiator sends what it has not sent in this epoch, control before bulk. */
	:: atomic {
		!i_raising && i_number[2] == NONE && !atomic_notified ->
		i_number[2] = i_next;
		number_atomic[i_epoch] = i_next; floor_atomic[i_epoch] = put_notified;
		i_next++;
		net_atomic[i_epoch] = true;
		printf("send atomic %d number %d\n", i_epoch, i_number[2])
	   }
	:: atomic {
		!i_raising && (i_number[2] != NONE || atomic_notified) && i_number[0] == NONE && !put_notified ->
		i_number[0] = i_next;
		number_put[i_epoch] = i_next;
		i_next++;
		net_put[i_epoch] = true;
		printf("send put %d 0 number %d\n", i_epoch, i_number[0])
	   }
	:: atomic {
		!i_raising && i_number[0] != NONE && i_number[1] == NONE && !put_notified ->
		i_number[1] = i_next;
		number_put[EPOCHS + 1 + i_epoch] = i_next;
		i_next++;
		net_put[EPOCHS + 1 + i_epoch] = true;
		printf("send put %d 1 number %d\n", i_epoch, i_number[1])
	   }
	/* A timeout. */
	:: atomic {
		!i_raising && IN_FLIGHT && i_epoch < EPOCHS ->
		start_epoch();
		i_epoch++;
#ifndef UNCONFIRMED
		i_raising = true;
#endif
		net_raise[i_epoch] = true; floor_raise[i_epoch] = put_notified;
		printf("send raise %d\n", i_epoch)
	   }
#ifdef LATE_CLEAR
	:: atomic { t_clear -> clear() }
#endif
	/* Something arrives. */
	:: atomic { some_epoch(); if :: net_raise[e] -> raise_arrives(e) :: else fi; e = 0; n = 0; k = false }
	:: atomic { some_epoch(); if :: net_confirm[e] -> confirm_arrives(e, 0) :: else fi; e = 0; n = 0; k = false }
	:: atomic { some_epoch(); if :: net_confirm[EPOCHS + 1 + e] -> confirm_arrives(e, 1) :: else fi; e = 0; n = 0; k = false }
	:: atomic { some_epoch(); if :: net_put[e] -> put_arrives(e, 0) :: else fi; e = 0; n = 0; k = false }
	:: atomic { some_epoch(); if :: net_put[EPOCHS + 1 + e] -> put_arrives(e, 1) :: else fi; e = 0; n = 0; k = false }
	:: atomic { some_epoch(); if :: net_atomic[e] -> atomic_arrives(e) :: else fi; e = 0; n = 0; k = false }
	:: atomic { some_epoch(); if :: net_answer[e] -> answer_arrives(e) :: else fi; e = 0; n = 0; k = false }
	:: atomic {
		some_epoch();
		if :: n = 1 :: n = 2 :: n = 3 :: n = 4 :: n = 5 :: n = 6 :: n = 7 fi;
		if :: net_ack[8 * e + n] -> ack_arrives(e, n) :: else fi; e = 0; n = 0; k = false
	   }
	:: put_notified && atomic_notified -> break
	od
}

#ifdef REACHES
/* Spin finds a run against this if both operations can end, which they must. */
ltl never_done { [] !(put_notified && atomic_notified) }
#endif
