/* From one chain to another on a device while blocks come and others quiesce (dsp/live/live_load.c bring_beside,
 * live_far_term.c claim, live_run.c, live_far_run.c give_back), for the model checker spin.
 *
 *   spin -a change.pml && cc -O2 -o pan pan.c && ./pan               0 errors
 *   spin -DBROKEN=1 -a change.pml && ... && ./pan                    "invalid end state": two wait for each other
 *   spin -DBROKEN=2 -a change.pml && ... && ./pan                    "assertion violated": two work in one chain
 *   spin -DBROKEN=3 -a change.pml && ... && ./pan                    "invalid end state"
 *
 * BROKEN 1: the one who loads takes the new chain back when it is not on the device just then, and the audio thread is
 * asked to give back what it has not heard of. BROKEN 2: a chain is shown to the audio thread before the workers know.
 * BROKEN 3: a chain that has faded out is still waited for.
 *
 * The claims: nobody is in a chain's memory while another takes it along; after a load the new chain plays on the
 * device; nobody waits for ever. Blocks that change nothing are left out, so a wait for what no block brings ends in a
 * state that nobody leaves. Nobody's patience comes to an end here: the waits of wt__live_wait have no bound.
 */
#ifndef BROKEN
#define BROKEN 0
#endif
#define OLD 0
#define NEW 1
#define NONE 2
#define CPU 0
#define DEVICE 1
#define MOVING 2
#define FADE 2     /* blocks */
#define QUIESCES 2 /* of others */

byte owner[2];
bool give_back[2], in_use[2], taken[2], gone[2];
byte next = NONE, left = NONE, current = OLD, leaving = NONE, faded;
byte live_far = OLD, far_leaving = NONE, far_coming = NONE;
bool changing, far_mutex;

#define TAKES_UP (next != NONE && leaving == NONE && left == NONE)
#define IS_ASKED (owner[current] == CPU && give_back[current])
#define IS_PLAYED(far) (BROKEN == 1 || far != far_coming) && (BROKEN == 3 || far != far_leaving || left == NONE)

inline lock(mutex) { atomic { !mutex -> mutex = true } }
inline unlock(mutex) { mutex = false }

/* ---- the audio thread, in freewheel: it waits for every answer */

inline play(far)
{
    assert(!gone[far]);
    do
    :: owner[far] == DEVICE -> break
    :: owner[far] == CPU ->
        in_use[far] = true;
        assert(!taken[far]);
        in_use[far] = false;
        break
    od;
    if
    :: give_back[far] && owner[far] == CPU -> owner[far] = MOVING
    :: else
    fi
}

proctype audio()
{
end:
    do
    :: TAKES_UP || leaving != NONE || IS_ASKED ->
        if
        :: TAKES_UP ->
            leaving = current;
            current = next;
            next = NONE;
            faded = 0
        :: else
        fi;
        play(current);
        if
        :: leaving != NONE ->
            play(leaving);
            faded++;
            if
            :: faded == FADE ->
                left = leaving;
                leaving = NONE
            :: else
            fi
        :: else
        fi
    od
}

/* ---- workers */

/* A worker takes a chain's memory along, from or to the device. */
inline carry(far, to)
{
    assert(!gone[far]);
    taken[far] = true;
    assert(!in_use[far]);
    taken[far] = false;
    owner[far] = to
}

inline end_term(far)
{
    if
    :: owner[far] == DEVICE -> carry(far, CPU)
    :: else
    fi
}

inline begin_term(far)
{
    if
    :: owner[far] == CPU && IS_PLAYED(far) ->
        give_back[far] = true;
        owner[far] == MOVING || !(IS_PLAYED(far))
    :: else
    fi;
    if
    :: owner[far] == CPU -> owner[far] = MOVING
    :: else
    fi;
    give_back[far] = false;
    if
    :: owner[far] == MOVING -> carry(far, DEVICE)
    :: else
    fi
}

inline stop()
{
    lock(far_mutex);
    end_term(live_far);
    if
    :: far_leaving != NONE -> end_term(far_leaving)
    :: else
    fi;
    unlock(far_mutex)
}

inline restart()
{
    lock(far_mutex);
    begin_term(live_far);
    if
    :: far_leaving != NONE -> begin_term(far_leaving)
    :: else
    fi;
    unlock(far_mutex)
}

proctype others()
{
    byte n;

    do
    :: n == QUIESCES -> break
    :: n < QUIESCES ->
        lock(changing);
        stop();
        restart();
        unlock(changing);
        n++
    od
}

proctype loader()
{
    lock(changing);
    stop();
    d_step {
        far_leaving = live_far;
        live_far = NEW;
        far_coming = NEW
    }
    restart();
    unlock(changing);
    if
    :: BROKEN == 1 && owner[NEW] != DEVICE ->
        lock(far_mutex);
        live_far = far_leaving;
        far_leaving = NONE;
        end_term(NEW);
        unlock(far_mutex);
        goto loaded
    :: BROKEN == 2 -> next = NEW
    :: else
    fi;
    lock(far_mutex);
    far_coming = NONE;
    unlock(far_mutex);
    if
    :: BROKEN != 2 -> next = NEW
    :: else
    fi;
    left != NONE;
    lock(far_mutex);
    end_term(far_leaving);
    far_leaving = NONE;
    unlock(far_mutex);
    left = NONE;
    gone[OLD] = true;
    lock(changing);
    stop();
    restart();
    unlock(changing);
    assert(current == NEW && (owner[NEW] == DEVICE || changing));
loaded:
    skip
}

init
{
    atomic {
        owner[OLD] = DEVICE;
        owner[NEW] = MOVING;
        run audio();
        run others();
        run loader()
    }
}
