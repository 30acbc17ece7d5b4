/* How the first thread block of a resident kernel tells the others what came of a turn (kernels/resident.cuh), for the
 * model checker spin: kernels of two thread blocks follow each other, leave when they have lived, are killed at any
 * moment, and begin a new term after that.
 *
 *   spin -a relay.pml && cc -O2 -o pan pan.c && ./pan                  0 errors
 *   spin -DBROKEN=1 -a relay.pml && ... && ./pan                       "assertion violated": they leave after different
 *                                                                     turns, by the word of an earlier kernel
 *   spin -DBROKEN=2 -a relay.pml && ... && ./pan                       "invalid end state": one waits for ever
 *
 * BROKEN 1 leaves out the kernel's number. BROKEN 2: a first block that finds itself killed as it begins says nothing.
 *
 * The claims: every turn is answered by both, once and in order, both leave after the same turn unless they are killed,
 * and nobody waits for ever.
 */
#ifndef BROKEN
#define BROKEN 0
#endif
#define SLOTS 2
#define BLOCKS 5
#define KERNELS 4 /* that may leave by themselves */

#define GO_ON 0
#define BLOCK 1
#define OVER 2
#define KILLED 3

byte relay_turn[SLOTS], relay_kernel[SLOTS], relay_verdict[SLOTS];
byte rung;             /* turns posted */
byte answered[2];      /* last turn answered */
byte place_turn[2], place_kernels[2];
bool kill, killed;     /* an order; that a kernel obeyed it */
byte n_running, n_lived;

#define HEARD (answered[0] < answered[1] -> answered[0] : answered[1])

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
    bool over, leave;
    place_kernels[id]++;
    kernel = place_kernels[id];
    turn = place_turn[id] + 1;
    leave = kill;
    if
    :: leave ->
        killed = true;
        if
        :: id == 0 && BROKEN != 2 -> tell(turn, kernel, KILLED)
        :: else
        fi;
        goto left
    :: else
    fi;
    do
    :: verdict = GO_ON;
        if
        :: id == 0 ->
            if
            :: over -> verdict = OVER
            :: !over && kill -> verdict = KILLED
            :: !over && rung >= turn -> verdict = BLOCK
            :: !over && n_lived < KERNELS -> n_lived++; verdict = OVER /* nothing came for long */
            fi;
            tell(turn, kernel, verdict)
        :: id == 1 ->
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
    :: else
    fi;
left:
    n_running--
}

/* Kernels one after the other on a stream; after a kill a new term from what was heard. */
active proctype stream()
{
    do
    :: HEARD == BLOCKS && n_running == 0 -> break
    :: else ->
        atomic {
            n_running = 2;
            run thread_block(0);
            run thread_block(1)
        }
        n_running == 0;
        if
        :: killed ->
            atomic {
                kill = false;
                killed = false;
                answered[0] = HEARD;
                answered[1] = HEARD;
                place_turn[0] = HEARD;
                place_turn[1] = HEARD
            }
        :: else -> assert(place_turn[0] == place_turn[1])
        fi
    od
}

/* A slot is used again when all have answered. When all is answered, the last kernel is stopped. */
active proctype host()
{
    bool has_killed;
    do
    :: rung < BLOCKS && rung - HEARD < SLOTS - 1 -> rung++
    :: !has_killed -> has_killed = true; kill = true
    :: HEARD == BLOCKS -> kill = true; break
    od
}
