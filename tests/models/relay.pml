/* How the first thread block of a resident kernel tells the others what came of a turn
 * (kernels/chain/resident_wait.cuh), for the model checker spin: kernels of several thread blocks follow each other,
 * leave when they have lived, are told to leave with their state or are killed at any moment, and begin a new term after
 * that (dsp/live/live_far_term.c).
 *
 *   spin -a relay.pml && cc -O2 -o pan pan.c && ./pan                  0 errors
 *   spin -DSTREAMS=3 -a relay.pml && ...                               0 errors in 4.5 million states
 *   spin -DBROKEN=1 -a relay.pml && ... && ./pan                       "assertion violated": they leave after different
 *                                                                     turns, by the word of an earlier kernel
 *   spin -DBROKEN=2 -a relay.pml && ... && ./pan                       "invalid end state": one waits for ever
 *
 *   spin -DBROKEN=3 -a relay.pml && ... && ./pan                       "assertion violated": one leaves with its state,
 *                                                                     another goes on
 *
 * BROKEN 1 leaves out the kernel's number. BROKEN 2: a first block that finds itself killed as it begins says nothing.
 * BROKEN 3: every block looks for the order to leave itself.
 *
 * The claims: every turn is answered by all, once and in order; all leave after the same turn unless they are killed;
 * the order to leave may be withdrawn as long as none has followed it, and then all follow or none; and nobody waits
 * for ever.
 */
#ifndef BROKEN
#define BROKEN 0
#endif
#ifndef STREAMS
#define STREAMS 2 /* thread blocks; a stream each; or 3 */
#endif
#define SLOTS 2
#define BLOCKS 3
#define KERNELS 3 /* that may leave by themselves */

#define GO_ON 0
#define BLOCK 1
#define OVER 2
#define KILLED 3
#define LEAVE 4

byte relay_turn[SLOTS], relay_kernel[SLOTS], relay_verdict[SLOTS];
byte rung;                  /* turns posted */
byte answered[STREAMS];     /* last turn answered */
byte place_turn[STREAMS], place_kernels[STREAMS];
bool kill, killed;          /* an order; that a kernel obeyed it */
bool leave;                 /* an order */
bool left[STREAMS];         /* this term's state is with the host */
byte n_running, n_lived;

#define LAST (STREAMS - 1)
#define SOME_LEFT (left[0] || left[1] || left[LAST])
#define ALL_LEFT (left[0] && left[1] && left[LAST])
#define OF_TWO(a, b) (a < b -> a : b)
#define HEARD (OF_TWO(answered[0], answered[1]) < answered[LAST] -> OF_TWO(answered[0], answered[1]) : answered[LAST])

inline tell(turn, kernel, what)
{
    d_step {
        relay_turn[(turn) % SLOTS] = turn;
        relay_kernel[(turn) % SLOTS] = kernel;
        relay_verdict[(turn) % SLOTS] = what;
    }
}

inline answer()
{
    atomic {
        assert(answered[id] == turn - 1);
        answered[id] = turn
    }
}

proctype thread_block(byte id)
{
    byte verdict, turn, kernel;
    bool over, gone;
    d_step {
        place_kernels[id]++;
        kernel = place_kernels[id];
        turn = place_turn[id] + 1;
    }
    gone = kill || left[id];
    if
    :: gone ->
        if
        :: kill -> killed = true
        :: else
        fi;
        if
        :: id == 0 && BROKEN != 2 -> tell(turn, kernel, KILLED)
        :: else
        fi;
        goto ended
    :: else
    fi;
    do
    :: verdict = GO_ON;
        if
        :: id == 0 ->
            if
            :: over -> verdict = OVER
            :: !over && kill -> verdict = KILLED
            :: !over && !kill && leave -> verdict = LEAVE
            :: !over && rung >= turn -> verdict = BLOCK
            :: !over && n_lived < KERNELS -> n_lived++; verdict = OVER /* nothing came for long */
            fi;
            tell(turn, kernel, verdict)
        :: id != 0 && BROKEN == 3 && leave -> verdict = LEAVE
        :: id != 0 ->
            atomic {
                relay_turn[turn % SLOTS] == turn && (BROKEN == 1 || relay_kernel[turn % SLOTS] == kernel) ->
                verdict = relay_verdict[turn % SLOTS]
            }
        fi;
        if
        :: verdict != BLOCK -> break
        :: else
        fi;
        answer();
        place_turn[id] = turn;
        turn++;
        if
        :: id == 0 && !over && n_lived < KERNELS -> n_lived++; over = true
        :: true
        fi
    od;
    if
    :: verdict == KILLED -> killed = true
    :: verdict == LEAVE -> left[id] = true
    :: else
    fi;
ended:
    n_running--
}

/* Kernels one after the other on a stream; after a kill, and when the state has been handed over, a new term. */
active proctype stream()
{
    byte s;
    do
    :: HEARD == BLOCKS && n_running == 0 -> break
    :: else ->
        atomic {
            n_running = STREAMS;
            s = 0;
            do
            :: s < STREAMS -> run thread_block(s); s++
            :: else -> break
            od
        }
        n_running == 0;
        assert(!SOME_LEFT || ALL_LEFT || killed);
        if
        :: killed ->
            d_step {
                kill = false;
                killed = false;
                leave = false;
                s = HEARD;
                answered[0] = s; answered[1] = s; answered[LAST] = s;
                place_turn[0] = s; place_turn[1] = s; place_turn[LAST] = s;
                left[0] = false; left[1] = false; left[LAST] = false
            }
        :: else ->
            assert(place_turn[0] == place_turn[1] && place_turn[1] == place_turn[LAST]);
            d_step {
                if
                :: ALL_LEFT -> left[0] = false; left[1] = false; left[LAST] = false; leave = false
                :: else
                fi
            }
        fi
    od
}

/* A slot is used again when all have answered. When all is answered, the last kernel is stopped. */
active proctype host()
{
    bool has_killed, has_left;
    do
    :: rung < BLOCKS && rung - HEARD < SLOTS - 1 -> rung++
    :: !has_killed -> has_killed = true; kill = true
    :: !has_left -> has_left = true; leave = true
    :: atomic { leave && !SOME_LEFT -> leave = false } /* it did not leave in time */
    :: HEARD == BLOCKS -> kill = true; break
    od
}
