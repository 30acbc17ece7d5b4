/// Diagrams on a canvas: frames with ticks, labels and grid, curves, images of a matrix, and the bar of its colours.
#ifndef WT_AXES_H
#define WT_AXES_H

#include "canvas.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A tick with a text of its own.
typedef struct wt_axis_mark {
    double value;
    char text[16];
} wt_axis_mark;

typedef struct wt_axis {
    double low, high; ///< low < high; a logarithmic axis begins above 0
    bool logarithmic;
    const char *label; ///< "frequency (Hz)"; NULL = neither label nor numbers
    const wt_axis_mark *marks; ///< [n_marks], at most 64, in place of numbers; borrowed; NULL = numbers
    int n_marks;
} wt_axis;

/// The area inside the frame, in pixels, and what its sides mean. Numbers and labels stand outside: leave 75 pixels at
/// the left, 55 below, 35 above.
typedef struct wt_axes {
    double left, top, width, height;
    wt_axis x, y;
    const char *title; ///< above, at the left; NULL = none
    const char *note;  ///< above, at the right; NULL = none
} wt_axes;

/// Pixel coordinates of a value.
double wt_axes_x(const wt_axes *axes, double value);
double wt_axes_y(const wt_axes *axes, double value);
/// The value at a fraction 0..1 of an axis.
double wt_axis_value(const wt_axis *axis, double fraction);

void wt_axes_draw_grid(wt_canvas *canvas, const wt_axes *axes);  ///< pale lines, before the content
void wt_axes_draw_frame(wt_canvas *canvas, const wt_axes *axes); ///< frame, ticks, numbers, labels, title: after it

/// values [n_rows][n_columns], row 0 at the bottom, stretched to the frame without smoothing; `low` and below has the
/// first colour, `high` and above the last. Rows lie at equal distances, so on a logarithmic axis at equal ratios.
void wt_axes_draw_matrix(wt_canvas *canvas, const wt_axes *axes, const float *values, int n_rows, int n_columns,
                         double low, double high);

/// A curve through count points; NaN interrupts it.
void wt_axes_draw_curve(wt_canvas *canvas, const wt_axes *axes, const double *x, const double *y, int count,
                        double thickness, wt_colour colour);

/// The colours from axes->y.low to axes->y.high, with numbers and label at the right; axes->x is not used.
void wt_axes_draw_colour_bar(wt_canvas *canvas, const wt_axes *axes);

#ifdef __cplusplus
}
#endif
#endif
