// zita-convolver with everything it has: vector mode, measured plans, one response shared by all channels.
#include "peer_zita.h"
#include <cstring>
#include <vector>
#include <zita-convolver.h>

struct peer_zita {
    Convproc convolver;
    int channels, block;
};

peer_zita *peer_zita_create(const float *taps, int n_taps, int channels, int block)
{
    peer_zita *peer = new peer_zita;
    std::vector<float> copy(taps, taps + n_taps);
    peer->channels = channels, peer->block = block;
    Convproc &z = peer->convolver;
    z.set_options(Convproc::OPT_VECTOR_MODE | Convproc::OPT_FFTW_MEASURE);
    int failed = z.configure(channels, channels, n_taps, block, block, Convproc::MAXPART, 0.0f);
    if (!failed) failed = z.impdata_create(0, 0, 1, copy.data(), 0, n_taps);
    for (int c = 1; c < channels && !failed; c++) failed = z.impdata_link(0, 0, c, c);
    if (!failed) failed = z.start_process(0, SCHED_OTHER);
    if (!failed) return peer;
    delete peer;
    return nullptr;
}

void peer_zita_process(peer_zita *peer, const float *const *in, float *const *out)
{
    const size_t bytes = sizeof(float) * (size_t)peer->block;
    for (int c = 0; c < peer->channels; c++) std::memcpy(peer->convolver.inpdata(c), in[c], bytes);
    peer->convolver.process(true);
    for (int c = 0; c < peer->channels; c++) std::memcpy(out[c], peer->convolver.outdata(c), bytes);
}

void peer_zita_destroy(peer_zita *peer)
{
    peer->convolver.stop_process();
    peer->convolver.cleanup();
    delete peer;
}
