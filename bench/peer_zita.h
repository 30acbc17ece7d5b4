/// zita-convolver as a peer of bench_convolution; compiled only where its header is found (WT_HAVE_ZITA).
#ifndef PEER_ZITA_H
#define PEER_ZITA_H
#ifdef __cplusplus
extern "C" {
#endif

typedef struct peer_zita peer_zita;

/// Up to 64 channels, each convolved with taps [n_taps] (copied), in blocks of `block` frames. NULL when zita refuses.
peer_zita *peer_zita_create(const float *taps, int n_taps, int channels, int block);
/// One block; waits until all of zita's threads have done their part.
void peer_zita_process(peer_zita *peer, const float *const *in, float *const *out);
void peer_zita_destroy(peer_zita *peer);

#ifdef __cplusplus
}
#endif
#endif
