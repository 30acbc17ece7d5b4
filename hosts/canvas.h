/// A picture in memory: filled areas, smooth lines and text, a perceptual colour map, written as PNG.
///
/// Coordinates are pixels from the top left corner, fractions allowed; what lies outside is cut off. Colours are
/// 0xRRGGBB. No function but create and write can fail.  [worker]
#ifndef WT_CANVAS_H
#define WT_CANVAS_H

#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_canvas wt_canvas;
typedef uint32_t wt_colour;

/// Errors: WT_ERR_BAD_ARG (a side outside 1..32768), WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt_canvas_create(int width, int height, wt_colour background, wt_canvas **canvas);
void wt_canvas_destroy(wt_canvas *canvas); ///< NULL is allowed.

void wt_canvas_fill(wt_canvas *canvas, double x, double y, double width, double height, wt_colour colour);
void wt_canvas_pixel(wt_canvas *canvas, int x, int y, wt_colour colour);
void wt_canvas_line(wt_canvas *canvas, double x0, double y0, double x1, double y1, double thickness, wt_colour colour);

/// Where the point (x, y) lies in the text: -1 left or top, 0 centre, 1 right or baseline.
typedef struct wt_text_style {
    double height; ///< of a capital letter, in pixels
    wt_colour colour;
    int align_x, align_y;
    double thickness; ///< of the strokes; 0 = height / 8
    int upward;       ///< not 0: the text runs from bottom to top
} wt_text_style;

/// Characters that are not printable ASCII are drawn as '?'.
void wt_canvas_text(wt_canvas *canvas, double x, double y, const wt_text_style *style, const char *text);
double wt_canvas_text_width(double height, const char *text);

/// The height at which the text is `width` pixels wide.
double wt_text_fit(const char *text, double width);

/// Position 0..1 on a scale from dark blue over red to pale yellow whose lightness rises evenly.
wt_colour wt_colour_map(double position);

/// Errors: WT_ERR_FILE; the target is then as it was.
WT_CHECKED wt_status wt_canvas_write_png(const wt_canvas *canvas, const char *path);

#ifdef __cplusplus
}
#endif
#endif
