/* The protocol of block rings (engine/block_ring.c, kernels/chain/block_ring.cuh, dsp/live/live_far_run.c), for the model checker
 * spin: a host posts blocks of two words into one ring, a device answers with two words in another.
 *
 *   spin -a block_ring.pml && cc -o pan pan.c && ./pan              0 errors, every state visited
 *   spin -DBROKEN=1 -a block_ring.pml && ... && ./pan -E            "assertion violated": words are torn
 *   spin -DBROKEN=2 -a block_ring.pml && ... && ./pan               "errors: 1": slots are used too early
 *
 * BROKEN 1 lets a word's turn and data become visible one after the other, in either order. BROKEN 2 lets the host post
 * without regard to the answers it has read; then a side waits for a turn that has been written over.
 *
 * The memory is as weak as it gets: stores to different words become visible in any order, whichever side made them,
 * and nobody waits for that; only stores to the same word keep their order. The claims: every block arrives once, in
 * order, with its own data, and so does every answer; nobody waits for ever.
 */
#ifndef BROKEN
#define BROKEN 0
#endif
#define SLOTS 2
#define WORDS 2  /* of a block: the doorbell and one of data */
#define BLOCKS 5 /* two laps and a half */

/* where a word lies: four words of the ring down, four of the ring up */
#define DOWN_AT(turn, word) (((turn) % SLOTS) * WORDS + (word))
#define UP_AT(turn, word) (SLOTS * WORDS + ((turn) % SLOTS) * WORDS + (word))
#define DOWN(turn, word) (10 * (word) + (turn))
#define UP(turn, word) (20 + 10 * (word) + (turn))

/* A word: what all see, and a store that is on its way. */
typedef word_t {
    byte turn, data, next_turn, next_data;
    bool turn_waits, data_waits
};
word_t words[2 * SLOTS * WORDS];

inline store(k, d, t)
{
    atomic {
        !words[k].turn_waits && !words[k].data_waits ->
        words[k].next_turn = t;
        words[k].next_data = d;
        words[k].turn_waits = true;
        words[k].data_waits = true
    }
}

active proctype host()
{
    byte posted = 0, heard = 0;

    do
    :: posted == BLOCKS && heard == BLOCKS -> break
    :: posted < BLOCKS && (BROKEN == 2 || posted - heard < SLOTS) ->
        store(DOWN_AT(posted + 1, 1), DOWN(posted + 1, 1), posted + 1);
        store(DOWN_AT(posted + 1, 0), DOWN(posted + 1, 0), posted + 1);
        posted++
    :: heard < posted && words[UP_AT(heard + 1, 0)].turn == heard + 1 && words[UP_AT(heard + 1, 1)].turn == heard + 1 ->
        assert(words[UP_AT(heard + 1, 0)].data == UP(heard + 1, 0));
        assert(words[UP_AT(heard + 1, 1)].data == UP(heard + 1, 1));
        heard++
    od
}

active proctype device()
{
    byte turn = 0;

    do
    :: turn == BLOCKS -> break
    :: turn < BLOCKS ->
        words[DOWN_AT(turn + 1, 0)].turn == turn + 1;
        assert(words[DOWN_AT(turn + 1, 0)].data == DOWN(turn + 1, 0));
        words[DOWN_AT(turn + 1, 1)].turn == turn + 1;
        assert(words[DOWN_AT(turn + 1, 1)].data == DOWN(turn + 1, 1));
        store(UP_AT(turn + 1, 0), UP(turn + 1, 0), turn + 1); /* the first word may overtake the others */
        store(UP_AT(turn + 1, 1), UP(turn + 1, 1), turn + 1);
        turn++
    od
}

/* One word of a ring becomes visible: whole, or in BROKEN 1 half of it. */
inline appear(k)
{
    if
    :: BROKEN != 1 && words[k].turn_waits ->
        words[k].turn = words[k].next_turn;
        words[k].data = words[k].next_data;
        words[k].turn_waits = false;
        words[k].data_waits = false
    :: BROKEN == 1 && words[k].turn_waits ->
        words[k].turn = words[k].next_turn;
        words[k].turn_waits = false
    :: BROKEN == 1 && words[k].data_waits ->
        words[k].data = words[k].next_data;
        words[k].data_waits = false
    fi
}

active proctype memory()
{
end:
    do
    :: atomic { (words[0].turn_waits || words[0].data_waits) -> appear(0) }
    :: atomic { (words[1].turn_waits || words[1].data_waits) -> appear(1) }
    :: atomic { (words[2].turn_waits || words[2].data_waits) -> appear(2) }
    :: atomic { (words[3].turn_waits || words[3].data_waits) -> appear(3) }
    :: atomic { (words[4].turn_waits || words[4].data_waits) -> appear(4) }
    :: atomic { (words[5].turn_waits || words[5].data_waits) -> appear(5) }
    :: atomic { (words[6].turn_waits || words[6].data_waits) -> appear(6) }
    :: atomic { (words[7].turn_waits || words[7].data_waits) -> appear(7) }
    od
}
