#include "axes.h"

#include <math.h>
#include <stdio.h>

enum { MAX_TICKS = 64 };

static const wt_colour ink = 0x303338, pale = 0xe3e6ea;
static const double text_height = 11;

typedef struct tick {
    double value;
    bool major;
    const char *text; // NULL = the value
} tick;

static double fraction_of(const wt_axis *axis, double value)
{
    if (axis->logarithmic) return log(value / axis->low) / log(axis->high / axis->low);
    return (value - axis->low) / (axis->high - axis->low);
}

double wt_axis_value(const wt_axis *axis, double fraction)
{
    if (axis->logarithmic) return axis->low * pow(axis->high / axis->low, fraction);
    return axis->low + (axis->high - axis->low) * fraction;
}

double wt_axes_x(const wt_axes *axes, double value)
{
    return axes->left + axes->width * fraction_of(&axes->x, value);
}

double wt_axes_y(const wt_axes *axes, double value)
{
    return axes->top + axes->height * (1 - fraction_of(&axes->y, value));
}

// ---- ticks

/// 1, 2 or 5 times a power of ten, so that neighbours are at least `distance` pixels apart.
static double nice_step(const wt_axis *axis, double pixels, double distance)
{
    const double least = (axis->high - axis->low) * distance / pixels, power = pow(10, floor(log10(least)));
    const double ratio = least / power;
    return power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
}

static int linear_ticks(const wt_axis *axis, double pixels, double distance, tick ticks[MAX_TICKS])
{
    const double step = nice_step(axis, pixels, distance), slack = step * 1e-6;
    int count = 0;
    for (double k = ceil((axis->low - slack) / step); k * step <= axis->high + slack && count < MAX_TICKS; k++)
        ticks[count++] = (tick){k * step, true, NULL};
    return count;
}

/// Every 1 .. 9 of a decade; 1, 2 and 5 are major where decades are wide enough, else only 1.
static int log_ticks(const wt_axis *axis, double pixels, double distance, tick ticks[MAX_TICKS])
{
    const double decade = pixels / log10(axis->high / axis->low);
    const bool fine = decade * log10(2) >= distance;
    int count = 0;
    for (double power = pow(10, floor(log10(axis->low))); power <= axis->high; power *= 10)
        for (int k = 1; k <= 9 && count < MAX_TICKS; k++) {
            const double value = k * power;
            if (value < axis->low * 0.9999 || value > axis->high * 1.0001) continue;
            ticks[count++] = (tick){value, k == 1 || (fine && (k == 2 || k == 5)), NULL};
        }
    return count;
}

static int marked_ticks(const wt_axis *axis, tick ticks[MAX_TICKS])
{
    int count = 0;
    for (int k = 0; k < axis->n_marks && count < MAX_TICKS; k++)
        if (axis->marks[k].value >= axis->low && axis->marks[k].value <= axis->high)
            ticks[count++] = (tick){axis->marks[k].value, true, axis->marks[k].text};
    return count;
}

static int ticks_of(const wt_axis *axis, double pixels, double distance, tick ticks[MAX_TICKS])
{
    if (axis->marks) return marked_ticks(axis, ticks);
    return axis->logarithmic ? log_ticks(axis, pixels, distance, ticks) : linear_ticks(axis, pixels, distance, ticks);
}

/// "20", "1.5k", "-0.25": three digits are enough for what a tick can be, more on long axes of small steps.
static void write_tick(const wt_axis *axis, const tick *t, char text[32])
{
    double value = t->value;
    const double largest = fmax(fabs(axis->low), fabs(axis->high));
    if (fabs(value) < largest * 1e-9) value = 0;
    if (t->text)
        snprintf(text, 32, "%s", t->text);
    else if (axis->logarithmic && value >= 1000)
        snprintf(text, 32, "%gk", value / 1000);
    else
        snprintf(text, 32, "%.*g", 10, value);
}

static const double x_distance = 70, y_distance = 34;

// ---- drawing

void wt_axes_draw_grid(wt_canvas *canvas, const wt_axes *axes)
{
    tick ticks[MAX_TICKS];
    int count = ticks_of(&axes->x, axes->width, x_distance, ticks);
    for (int k = 0; k < count; k++)
        wt_canvas_fill(canvas, floor(wt_axes_x(axes, ticks[k].value)), axes->top, 1, axes->height, pale);
    count = ticks_of(&axes->y, axes->height, y_distance, ticks);
    for (int k = 0; k < count; k++)
        wt_canvas_fill(canvas, axes->left, floor(wt_axes_y(axes, ticks[k].value)), axes->width, 1, pale);
}

static void draw_x_ticks(wt_canvas *canvas, const wt_axes *axes)
{
    const wt_text_style style = {.height = text_height, .colour = ink, .align_y = -1};
    const double bottom = axes->top + axes->height;
    tick ticks[MAX_TICKS];
    char text[32];
    const int count = ticks_of(&axes->x, axes->width, x_distance, ticks);
    for (int k = 0; k < count; k++) {
        const double x = floor(wt_axes_x(axes, ticks[k].value));
        wt_canvas_fill(canvas, x, bottom, 1, ticks[k].major ? 6 : 3, ink);
        if (!ticks[k].major || !axes->x.label) continue;
        write_tick(&axes->x, &ticks[k], text);
        wt_canvas_text(canvas, x + 0.5, bottom + 11, &style, text);
    }
    if (axes->x.label) wt_canvas_text(canvas, axes->left + axes->width / 2, bottom + 32, &style, axes->x.label);
}

/// Numbers at the left (side -1) or at the right (1) of the frame, the label beyond the longest of them.
static void draw_y_ticks(wt_canvas *canvas, const wt_axes *axes, int side)
{
    const wt_text_style style = {.height = text_height, .colour = ink, .align_x = -side};
    const double edge = side < 0 ? axes->left : axes->left + axes->width;
    double widest = 0;
    tick ticks[MAX_TICKS];
    char text[32];
    const int count = ticks_of(&axes->y, axes->height, y_distance, ticks);
    for (int k = 0; k < count; k++) {
        const double y = floor(wt_axes_y(axes, ticks[k].value)), length = ticks[k].major ? 6 : 3;
        wt_canvas_fill(canvas, side < 0 ? edge - length : edge, y, length, 1, ink);
        if (!ticks[k].major || !axes->y.label) continue;
        write_tick(&axes->y, &ticks[k], text);
        wt_canvas_text(canvas, edge + side * 11, y + 0.5, &style, text);
        widest = fmax(widest, wt_canvas_text_width(text_height, text));
    }
    if (!axes->y.label) return;
    const double fitting = fmin(text_height, wt_text_fit(axes->y.label, axes->height + 16));
    const wt_text_style upward = {.height = fitting, .colour = ink, .align_y = -side, .upward = 1};
    wt_canvas_text(canvas, edge + side * (widest + 24), axes->top + axes->height / 2, &upward, axes->y.label);
}

static void draw_box(wt_canvas *canvas, const wt_axes *axes)
{
    const double right = axes->left + axes->width, bottom = axes->top + axes->height;
    wt_canvas_fill(canvas, axes->left - 1, axes->top - 1, axes->width + 2, 1, ink);
    wt_canvas_fill(canvas, axes->left - 1, bottom, axes->width + 2, 1, ink);
    wt_canvas_fill(canvas, axes->left - 1, axes->top - 1, 1, axes->height + 2, ink);
    wt_canvas_fill(canvas, right, axes->top - 1, 1, axes->height + 2, ink);
}

void wt_axes_draw_frame(wt_canvas *canvas, const wt_axes *axes)
{
    draw_box(canvas, axes);
    draw_x_ticks(canvas, axes);
    draw_y_ticks(canvas, axes, -1);
    const wt_text_style title = {
        .height = text_height + 1, .colour = ink, .align_x = -1, .align_y = 1, .thickness = 2.1};
    wt_text_style note = {.height = text_height - 1, .colour = 0x5c6470, .align_x = 1, .align_y = 1};
    double room = axes->width;
    if (axes->title) {
        wt_canvas_text(canvas, axes->left, axes->top - 12, &title, axes->title);
        room -= wt_canvas_text_width(title.height, axes->title) + 20;
    }
    if (axes->note) note.height = fmin(note.height, wt_text_fit(axes->note, room));
    if (axes->note && room > 0) wt_canvas_text(canvas, axes->left + axes->width, axes->top - 12, &note, axes->note);
}

void wt_axes_draw_matrix(wt_canvas *canvas, const wt_axes *axes, const float *values, int n_rows, int n_columns,
                         double low, double high)
{
    wt_colour colours[256];
    for (int k = 0; k < 256; k++) colours[k] = wt_colour_map(k / 255.0);
    const int width = (int)axes->width, height = (int)axes->height;
    for (int y = 0; y < height; y++) {
        const float *row = values + (size_t)((int64_t)(height - 1 - y) * n_rows / height) * (size_t)n_columns;
        for (int x = 0; x < width; x++) {
            const double position = (row[(int64_t)x * n_columns / width] - low) / (high - low);
            const int k = position > 0 ? (int)fmin(position * 256, 255) : 0;
            wt_canvas_pixel(canvas, (int)axes->left + x, (int)axes->top + y, colours[k]);
        }
    }
}

void wt_axes_draw_curve(wt_canvas *canvas, const wt_axes *axes, const double *x, const double *y, int count,
                        double thickness, wt_colour colour)
{
    for (int k = 1; k < count; k++) {
        if (isnan(y[k]) || isnan(y[k - 1])) continue;
        wt_canvas_line(canvas, wt_axes_x(axes, x[k - 1]), wt_axes_y(axes, y[k - 1]), wt_axes_x(axes, x[k]),
                       wt_axes_y(axes, y[k]), thickness, colour);
    }
}

void wt_axes_draw_colour_bar(wt_canvas *canvas, const wt_axes *axes)
{
    for (double y = 0; y < axes->height; y++)
        wt_canvas_fill(canvas, axes->left, axes->top + y, axes->width, 1, wt_colour_map(1 - (y + 0.5) / axes->height));
    draw_box(canvas, axes);
    draw_y_ticks(canvas, axes, 1);
}
