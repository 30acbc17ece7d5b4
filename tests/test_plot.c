// The picture's numbers, and that the file is a whole picture. How it looks is for eyes.
#include "support/audio_files.h"
#include "support/failing_alloc.h"
#include "support/picture.h"
#include "support/testing.h"
#include "../hosts/axes.h"
#include "../hosts/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void a_sine_stands_at_its_frequency_and_level(void **state)
{
    (void)state;
    // Hann's scalloping loss is at most 1.42 dB, and a band between two bins lies a little below: 1.6 dB. A row of 100
    // over three decades is 7 % of its frequency wide, and at 100 Hz a bin is 12 %: two rows.
    enum { N = 48000, ROWS = 100, COLUMNS = 20 };
    static const double frequencies[] = {100, 440, 1000, 12345};
    static const int rates[] = {16000, 44100, 48000, 96000};
    static float out[ROWS * COLUMNS];
    for (int k = 0; k < 16; k++) {
        const double hz = frequencies[k % 4];
        const int rate = rates[k / 4];
        if (hz > rate / 2) continue;
        wt_audio audio = {test_sine(2, N, rate, hz, 0.1f), rate, 2, N, {0}};
        assert_ok(wt_plot_spectrogram(&audio, 20, 20000, ROWS, COLUMNS, out));
        const int column = COLUMNS / 2;
        int highest = 0;
        for (int row = 0; row < ROWS; row++) {
            if (out[row * COLUMNS + column] > out[highest * COLUMNS + column]) highest = row;
            if (20 * pow(1000, row / (double)ROWS) > rate / 2) assert_true(out[row * COLUMNS + column] == -200);
        }
        const double expected = log(hz / 20) / log(1000) * ROWS - 0.5;
        if (fabs(highest - expected) > 2) fail_msg("%g Hz at %d Hz: row %d, want %.1f", hz, rate, highest, expected);
        const double db = out[highest * COLUMNS + column];
        if (db < -21.6 || db > -19.9) fail_msg("%g Hz at %d Hz: %.2f dB, want -20", hz, rate, db);
        free(audio.samples);
    }
}

static void silence_and_single_frames_have_a_picture(void **state)
{
    static float zeros[300], out[16];
    wt_audio silence = {zeros, 8000, 3, 100, {0}}, one = {(float[]){1}, 48000, 1, 1, {0}};
    assert_ok(wt_plot_spectrogram(&silence, 20, 20000, 4, 4, out));
    for (int k = 0; k < 16; k++) assert_true(out[k] == -200);
    assert_ok(wt_plot_before_after(test_path(state, "short.png"), &silence, &one, NULL));
    int width, height;
    free(picture_read(test_path(state, "short.png"), &width, &height));
    assert_int_equal(width, 1600);
    assert_int_equal(height, 1000);
}

static void the_picture_shows_both_and_replaces_only_when_whole(void **state)
{
    wt_audio quiet = {test_sine(1, 4000, 16000, 500, 0.1f), 16000, 1, 4000, {0}};
    wt_audio loud = {test_sine(1, 4000, 16000, 500, 0.9f), 16000, 1, 4000, {0}};
    const char *path = test_path(state, "both.png");
    const wt_plot_config config = {.title = "both \xc3\xbc", .width = 1000, .height = 600}; // no ASCII: drawn as '?'
    assert_ok(wt_plot_before_after(path, &quiet, &loud, &config));
    int width, height, blue = 0, orange = 0;
    unsigned char *rgb = picture_read(path, &width, &height);
    assert_int_equal(width, 1000);
    assert_int_equal(height, 600);
    for (int k = 0; k < width * height; k++) { // the same scale: 9 times the height, RMS band for RMS band
        blue += rgb[3 * k] == 0x2c && rgb[3 * k + 1] == 0x5d && rgb[3 * k + 2] == 0x9b;
        orange += rgb[3 * k] == 0xb4 && rgb[3 * k + 1] == 0x53 && rgb[3 * k + 2] == 0x1f;
    }
    assert_in_range(orange, 5 * blue, 15 * blue);
    assert_true(blue > 500);
    free(rgb);
    const char *missing = test_path(state, "none/both.png");
    assert_int_equal(wt_plot_before_after(missing, &quiet, &loud, &config), WT_ERR_FILE);
    assert_non_null(strstr(wt_last_error(), "none/both.png: cannot be created: No such file or directory"));
    wt_audio empty = loud;
    empty.n_frames = 0;
    assert_int_equal(wt_plot_before_after(path, &quiet, &empty, &config), WT_ERR_BAD_ARG);
    assert_int_equal(wt_plot_before_after(path, &quiet, &loud, &(wt_plot_config){.width = 999}), WT_ERR_BAD_ARG);
    assert_int_equal(test_folder_count(state, ".both"), 0);
    free(quiet.samples);
    free(loud.samples);
}

static wt_status draw_spectrogram(void *user)
{
    wt_audio *audio = user;
    static float out[100];
    wt_status status = wt_plot_spectrogram(audio, 20, 20000, 10, 10, out);
    wt_canvas *canvas = NULL;
    if (!status) status = wt_canvas_create(30, 20, 0, &canvas);
    wt_canvas_destroy(canvas);
    return status;
}

static void nothing_to_destroy(void *user)
{
    (void)user;
}

static void running_out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    static float impulse[1000] = {1};
    wt_audio audio = {impulse, 8000, 1, 1000, {0}};
    assert_true(assert_survives_failing_alloc(draw_spectrogram, nothing_to_destroy, &audio) > 6);
}

static void axes_map_values_to_pixels(void **state)
{
    (void)state;
    const wt_axes axes = {
        .left = 10, .top = 20, .width = 300, .height = 200,
        .x = {.low = 20, .high = 20000, .logarithmic = true}, .y = {.low = -60}};
    assert_true(fabs(wt_axes_x(&axes, 20) - 10) < 1e-9);
    assert_true(fabs(wt_axes_x(&axes, 200) - 110) < 1e-9);
    assert_true(fabs(wt_axes_x(&axes, 20000) - 310) < 1e-9);
    assert_true(fabs(wt_axes_y(&axes, 0) - 20) < 1e-9);
    assert_true(fabs(wt_axes_y(&axes, -45) - 170) < 1e-9);
    assert_true(fabs(wt_axis_value(&axes.x, fabs(wt_axes_x(&axes, 777) - 10) / 300) - 777) < 1e-6);
}

static void the_canvas_draws_what_it_is_told(void **state)
{
    wt_canvas *canvas;
    assert_ok(wt_canvas_create(100, 50, 0xffffff, &canvas));
    wt_canvas_fill(canvas, 10, 10, 5, 5, 0x112233);
    wt_canvas_fill(canvas, 20.5, 10, 1, 1, 0x000000);          // half of two pixels each
    wt_canvas_line(canvas, -50, 40.5, 500, 40.5, 3, 0x000000); // cut at both sides
    const wt_text_style huge = {.height = 300, .colour = 0xff0000, .align_x = -1};
    wt_canvas_text(canvas, 95, 45, &huge, "W"); // cut at three sides
    const char *path = test_path(state, "canvas.png");
    assert_ok(wt_canvas_write_png(canvas, path));
    wt_canvas_destroy(canvas);
    int width, height;
    unsigned char *rgb = picture_read(path, &width, &height);
    assert_memory_equal(rgb + 3 * (12 * 100 + 12), "\x11\x22\x33", 3);
    assert_memory_equal(rgb + 3 * (12 * 100 + 15), "\xff\xff\xff", 3);
    assert_in_range(rgb[3 * (10 * 100 + 20)], 126, 129);
    assert_in_range(rgb[3 * (10 * 100 + 21)], 126, 129);
    assert_memory_equal(rgb + 3 * 40 * 100, "\0\0\0", 3);
    assert_memory_equal(rgb + 3 * (40 * 100 + 97), "\xff\0\0", 3);
    free(rgb);
    assert_fails(wt_canvas_create(0, 50, 0, &canvas), WT_ERR_BAD_ARG, "picture: 0 x 50 pixels, want sides of 1..32768");
    assert_true(wt_canvas_text_width(12, "mm") > 2 * wt_canvas_text_width(12, "m"));
    assert_true(wt_canvas_text_width(24, "Hz") == 2 * wt_canvas_text_width(12, "Hz"));
}

static void colours_grow_lighter_in_even_steps(void **state)
{
    (void)state;
    double before = 0;
    for (int k = 0; k <= 64; k++) {
        const wt_colour colour = wt_colour_map(k / 64.0);
        double luminance = 0;
        static const double weights[] = {0.2126, 0.7152, 0.0722};
        for (int c = 0; c < 3; c++) {
            const double coded = (colour >> (16 - 8 * c) & 0xff) / 255.0;
            luminance += weights[c] * (coded <= 0.04045 ? coded / 12.92 : pow((coded + 0.055) / 1.055, 2.4));
        }
        const double lightness = luminance > 0.008856 ? 116 * cbrt(luminance) - 16 : 903.3 * luminance;
        // 94 / 64 = 1.47 a step; 8-bit colours round it by up to half a step
        if (k) assert_true(lightness - before > 0.7 && lightness - before < 2.3);
        before = lightness;
    }
    assert_int_equal(wt_colour_map(-1), wt_colour_map(0));
    assert_int_equal(wt_colour_map(2), wt_colour_map(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sine_stands_at_its_frequency_and_level),
        cmocka_unit_test(silence_and_single_frames_have_a_picture),
        cmocka_unit_test(the_picture_shows_both_and_replaces_only_when_whole),
        cmocka_unit_test(running_out_of_memory_leaves_nothing_behind),
        cmocka_unit_test(axes_map_values_to_pixels),
        cmocka_unit_test(the_canvas_draws_what_it_is_told),
        cmocka_unit_test(colours_grow_lighter_in_even_steps),
    };
    return cmocka_run_group_tests_name("plot", tests, test_folder_create, test_folder_remove);
}
