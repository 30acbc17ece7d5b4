// Echo cancellation: what happens to one bin of one partition. dsp/voice/echo.c and the echo_cancel node run the same
// text; what it does and after whom is told in dsp/voice/echo.c.
#ifndef WT_ECHO_KERNEL_H
#define WT_ECHO_KERNEL_H
#include "fastmath_kernel.h"

#define ECHO_LOUDEST 1e9f   // samples beyond count as 0
#define ECHO_SILENT  1e-12f // mean square of a block: -120 dB full scale
// Constants chosen in 16 kHz rooms of 256 ms (tests/test_echo.c). FIRST_DOUBT: of 1, 0.1, 0.05 and 0.02 a part, noise
// and speech are learnt fastest with the last two. WORSE: 1 dB.
#define ECHO_FIRST_DOUBT 0.05f
#define ECHO_WORSE       1.26f

// Parts of what was that a block leaves.
typedef struct echo_rules {
    float keep, near_keep, power_keep;
} echo_rules;

// What a microphone's filter is worth: smoothed mean squares of the microphone and of the error, and trust: 0 = the
// output is the microphone, 1 = the filter's error.
typedef struct echo_worth {
    float mic_power, error_power, trust;
} echo_worth;

WT_SHARED_FN float echo_tame(float x) { return fabsf(x) <= ECHO_LOUDEST ? x : 0.0f; }

WT_SHARED_FN echo_worth echo_judge(const echo_rules *r, echo_worth before, float mic_power, float error_power)
{
    echo_worth w;
    w.mic_power = before.mic_power + (1.0f - r->power_keep) * (mic_power - before.mic_power);
    w.error_power = before.error_power + (1.0f - r->power_keep) * (error_power - before.error_power);
    w.trust = w.error_power <= w.mic_power ? 1.0f : 0.0f;
    return w;
}

// 1 / D; `near` is smoothed with the error's power, `echo` is what of D is the echo's.
WT_SHARED_FN float echo_step(const echo_rules *r, float *near, float echo, float e_re, float e_im)
{
    const float power = e_re * e_re + e_im * e_im;
    *near = r->near_keep * *near + (1.0f - r->near_keep) * power;
    return 1.0f / (echo + wt_max(*near, power) + 1e-12f);
}

// The doubt that is left after a step.
WT_SHARED_FN float echo_doubt(const echo_rules *r, float doubt, float step, float x_power, float w_re, float w_im)
{
    const float keep = r->keep * r->keep;
    return keep * (1.0f - 0.5f * doubt * step * x_power) * doubt + (1.0f - keep) * (w_re * w_re + w_im * w_im);
}
#endif
