/* The protocol of engine/ring.c on a machine weaker than any we run on, for the model checker spin.
 *
 *   spin -a ring.pml && cc -o pan pan.c && ./pan                  0 errors, every state visited
 *   spin -DRELAXED=1 -a ring.pml && cc -o pan pan.c && ./pan -E   "assertion violated"; so for 2, 3 and 4
 *
 * RELAXED takes the order from one of the four accesses that have one:
 *   1  the producer's store of head    (release in wt_ring_push and wt_ring_commit)
 *   2  the consumer's load of head     (acquire in claim_ready)
 *   3  the consumer's store of tail    (release in wt_ring_pop and wt_ring_release)
 *   4  the producer's load of tail     (acquire in claim_space)
 *
 * The weak memory. A relaxed access may take effect at another time than its place in the program:
 *   - the producer's stores wait in a buffer and become visible in any order; a release store only after all others
 *     (also later ones: the run in which it did not wait for those is the one in which they came later);
 *   - the consumer sees the slots through a view that may be old, each slot brought up to date at any time or never;
 *     an acquire load brings all up to date;
 *   - the consumer's loads of slots may be carried out late, after its later stores; a release store waits for them;
 *   - a relaxed load of tail may be carried out after later stores: the producer goes on with a value from the future,
 *     and only runs in which that value does come are kept (so -E: the others end early, which is no error).
 *
 * Element i has the value i + 1, slots hold 0 at first. The claims: every element arrives, once, in order, unharmed,
 * and neither side waits for ever. Indices are those of the C code; they count up and never wrap.
 */
#ifndef RELAXED
#define RELAXED 0
#endif
#define CAPACITY 2
#define ELEMENTS 6 /* three laps */

/* What all can see. */
byte slots[CAPACITY];
byte head, tail;

/* The producer's store buffer. */
bool slot_waits[CAPACITY];
byte slot_value[CAPACITY];
bool head_waits;
byte head_value;

/* The consumer: its view of the slots, its loads not yet carried out, its store buffer. */
byte view[CAPACITY];
bool load_waits[CAPACITY];
byte load_expects[CAPACITY];
bool tail_waits;
byte tail_value;

active proctype producer()
{
    byte pushed = 0, tail_seen = 0, batch_end;

    do
    :: pushed == ELEMENTS -> break
    :: pushed < ELEMENTS ->
        /* claim_space: load tail again, at the latest when the room known of is not enough */
        if
        :: atomic { tail > tail_seen -> tail_seen = tail }
        :: RELAXED == 4 && tail_seen < pushed -> tail_seen++ /* a value from the future */
        :: pushed - tail_seen < CAPACITY
        fi;

        /* copy a batch of one or more */
        batch_end = pushed;
        do
        :: batch_end < ELEMENTS && batch_end - tail_seen < CAPACITY ->
            atomic {
                !slot_waits[batch_end % CAPACITY] ->
                slot_value[batch_end % CAPACITY] = batch_end + 1;
                slot_waits[batch_end % CAPACITY] = true;
                batch_end++
            }
        :: batch_end > pushed -> break
        od;
        RELAXED != 4 || tail >= tail_seen; /* the load of tail is carried out here at the latest */

        atomic { head_value = batch_end; head_waits = true };
        pushed = batch_end
    od
}

active proctype consumer()
{
    byte popped = 0, head_seen = 0, batch_end;

    do
    :: popped == ELEMENTS -> break
    :: popped < ELEMENTS ->
        /* claim_ready: load head again, at the latest when nothing known of is left */
        if
        :: atomic {
               head > head_seen ->
               head_seen = head;
               if
               :: RELAXED != 2 -> view[0] = slots[0]; view[1] = slots[1]
               :: else
               fi
           }
        :: popped < head_seen
        fi;

        /* copy a batch of one or more */
        batch_end = popped;
        do
        :: batch_end < head_seen && batch_end - popped < CAPACITY ->
            atomic {
                !load_waits[batch_end % CAPACITY] ->
                load_expects[batch_end % CAPACITY] = batch_end + 1;
                load_waits[batch_end % CAPACITY] = true;
                batch_end++
            }
        :: batch_end > popped -> break
        od;

        atomic { tail_value = batch_end; tail_waits = true };
        popped = batch_end
    od
}

/* Carries out what waits, in any order that the program's orders leave open. */
active proctype memory()
{
end:
    do
    :: atomic { slot_waits[0] -> slots[0] = slot_value[0]; slot_waits[0] = false }
    :: atomic { slot_waits[1] -> slots[1] = slot_value[1]; slot_waits[1] = false }
    :: atomic {
           head_waits && (RELAXED == 1 || !(slot_waits[0] || slot_waits[1])) -> head = head_value; head_waits = false
       }
    :: atomic { view[0] != slots[0] -> view[0] = slots[0] }
    :: atomic { view[1] != slots[1] -> view[1] = slots[1] }
    :: atomic { load_waits[0] -> assert(view[0] == load_expects[0]); load_waits[0] = false }
    :: atomic { load_waits[1] -> assert(view[1] == load_expects[1]); load_waits[1] = false }
    :: atomic {
           tail_waits && (RELAXED == 3 || !(load_waits[0] || load_waits[1])) -> tail = tail_value; tail_waits = false
       }
    od
}
