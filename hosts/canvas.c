// Lines and letters are drawn by distance: a pixel's coverage is how far it lies inside the stroke, at most 1.
#include "canvas.h"
#include "atomic_file.h"
#include "font.h"

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double pi = 3.14159265358979323846;

struct wt_canvas {
    int width, height;
    unsigned char *rgb; // [height][width][3]
};

wt_status wt_canvas_create(int width, int height, wt_colour background, wt_canvas **canvas)
{
    *canvas = NULL;
    if (width < 1 || width > 32768 || height < 1 || height > 32768)
        return wt_fail(WT_ERR_BAD_ARG, "picture: %d x %d pixels, want sides of 1..32768", width, height);
    wt_canvas *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "picture: handle");
    p->width = width;
    p->height = height;
    p->rgb = malloc((size_t)width * (size_t)height * 3);
    if (!p->rgb) {
        wt_canvas_destroy(p);
        return wt_fail(WT_ERR_NO_MEMORY, "picture: %d x %d pixels", width, height);
    }
    wt_canvas_fill(p, 0, 0, width, height, background);
    *canvas = p;
    return WT_OK;
}

void wt_canvas_destroy(wt_canvas *canvas)
{
    if (canvas) free(canvas->rgb);
    free(canvas);
}

static void blend(wt_canvas *p, int x, int y, wt_colour colour, double coverage)
{
    if (x < 0 || y < 0 || x >= p->width || y >= p->height || coverage <= 0) return;
    unsigned char *rgb = p->rgb + ((size_t)y * (size_t)p->width + (size_t)x) * 3;
    if (coverage > 1) coverage = 1;
    for (int k = 0; k < 3; k++) {
        const double ink = colour >> (16 - 8 * k) & 0xff;
        rgb[k] = (unsigned char)lrint(rgb[k] + (ink - rgb[k]) * coverage);
    }
}

void wt_canvas_pixel(wt_canvas *canvas, int x, int y, wt_colour colour)
{
    blend(canvas, x, y, colour, 1);
}

/// The part of the pixel [n, n + 1) that lies in [low, high).
static double overlap(int n, double low, double high)
{
    return fmin(n + 1, high) - fmax(n, low);
}

void wt_canvas_fill(wt_canvas *p, double x, double y, double width, double height, wt_colour colour)
{
    const double right = fmin(x + width, p->width), bottom = fmin(y + height, p->height);
    for (int row = (int)fmax(y, 0); row < bottom; row++)
        for (int column = (int)fmax(x, 0); column < right; column++)
            blend(p, column, row, colour, overlap(column, x, right) * overlap(row, y, bottom));
}

typedef struct stroke {
    double x0, y0, x1, y1;
} stroke;

static double distance(const stroke *s, double x, double y)
{
    const double dx = s->x1 - s->x0, dy = s->y1 - s->y0, length = dx * dx + dy * dy;
    double along = length > 0 ? ((x - s->x0) * dx + (y - s->y0) * dy) / length : 0;
    along = fmin(fmax(along, 0), 1);
    return hypot(x - s->x0 - along * dx, y - s->y0 - along * dy);
}

/// Draw strokes as one shape, so that joints are no darker than lines.
static void draw_strokes(wt_canvas *p, const stroke *strokes, int count, double thickness, wt_colour colour)
{
    double left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
    for (int k = 0; k < count; k++) {
        left = fmin(left, fmin(strokes[k].x0, strokes[k].x1));
        right = fmax(right, fmax(strokes[k].x0, strokes[k].x1));
        top = fmin(top, fmin(strokes[k].y0, strokes[k].y1));
        bottom = fmax(bottom, fmax(strokes[k].y0, strokes[k].y1));
    }
    const double margin = thickness / 2 + 1;
    for (int y = (int)fmax(top - margin, 0); y < fmin(bottom + margin, p->height); y++)
        for (int x = (int)fmax(left - margin, 0); x < fmin(right + margin, p->width); x++) {
            double nearest = 1e9;
            for (int k = 0; k < count; k++) nearest = fmin(nearest, distance(&strokes[k], x + 0.5, y + 0.5));
            blend(p, x, y, colour, thickness / 2 + 0.5 - nearest);
        }
}

void wt_canvas_line(wt_canvas *p, double x0, double y0, double x1, double y1, double thickness, wt_colour colour)
{
    // in pieces of at most 16 pixels: a long slanted line would make a large box to search
    const int pieces = 1 + (int)(hypot(x1 - x0, y1 - y0) / 16);
    if (x0 == x1 || y0 == y1 || pieces == 1) {
        draw_strokes(p, &(stroke){x0, y0, x1, y1}, 1, thickness, colour);
        return;
    }
    for (int k = 0; k < pieces; k++) {
        const double a = (double)k / pieces, b = (k + 1.0) / pieces;
        draw_strokes(p, &(stroke){x0 + (x1 - x0) * a, y0 + (y1 - y0) * a, x0 + (x1 - x0) * b, y0 + (y1 - y0) * b}, 1,
                     thickness, colour);
    }
}

// ---- text

static const unsigned char *glyph_of(char letter)
{
    return wt__font[(letter < WT__FONT_FIRST || letter > WT__FONT_LAST ? '?' : letter) - WT__FONT_FIRST];
}

static int node(const unsigned char *glyph, int row, int column)
{
    if (row < 0 || row >= WT__FONT_ROWS || column < 0 || column >= WT__FONT_COLUMNS) return 0;
    return glyph[row] >> (WT__FONT_COLUMNS - 1 - column) & 1;
}

/// First and last column with a node; a space is three columns wide.
static void extent(const unsigned char *glyph, int *first, int *last)
{
    int all = 0;
    for (int row = 0; row < WT__FONT_ROWS; row++) all |= glyph[row];
    *first = 0;
    *last = all ? WT__FONT_COLUMNS - 1 : 1;
    while (all && !(all >> (WT__FONT_COLUMNS - 1 - *first) & 1)) ++*first;
    while (all && !(all >> (WT__FONT_COLUMNS - 1 - *last) & 1)) --*last;
}

static const double letter_gap = 2; // columns from the last node of a letter to the first of the next

double wt_canvas_text_width(double height, const char *text)
{
    double columns = 0;
    for (const char *at = text; *at; at++) {
        int first, last;
        extent(glyph_of(*at), &first, &last);
        columns += last - first + letter_gap;
    }
    return columns > 0 ? (columns - letter_gap) * height / WT__FONT_BASELINE : 0;
}

double wt_text_fit(const char *text, double width)
{
    const double unit = wt_canvas_text_width(1, text);
    return unit > 0 ? width / unit : width;
}

/// Neighbouring nodes are joined; diagonal ones only where no third node joins them already.
static int glyph_strokes(const unsigned char *glyph, stroke strokes[4 * WT__FONT_ROWS * WT__FONT_COLUMNS])
{
    int count = 0;
    for (int row = 0; row < WT__FONT_ROWS; row++)
        for (int column = 0; column < WT__FONT_COLUMNS; column++) {
            if (!node(glyph, row, column)) continue;
            const int right = node(glyph, row, column + 1), down = node(glyph, row + 1, column);
            const int left = node(glyph, row, column - 1);
            strokes[count++] = (stroke){column, row, column, row};
            if (right) strokes[count++] = (stroke){column, row, column + 1, row};
            if (down) strokes[count++] = (stroke){column, row, column, row + 1};
            if (!right && !down && node(glyph, row + 1, column + 1))
                strokes[count++] = (stroke){column, row, column + 1, row + 1};
            if (!left && !down && node(glyph, row + 1, column - 1))
                strokes[count++] = (stroke){column, row, column - 1, row + 1};
        }
    return count;
}

void wt_canvas_text(wt_canvas *canvas, double x, double y, const wt_text_style *style, const char *text)
{
    const double unit = style->height / WT__FONT_BASELINE, thickness = style->thickness;
    double along = -wt_canvas_text_width(style->height, text) * (style->align_x + 1) / 2;
    const double up = style->height * (1 - style->align_y) / 2 - style->height; // of the first row, downward positive
    for (const char *at = text; *at; at++) {
        stroke strokes[4 * WT__FONT_ROWS * WT__FONT_COLUMNS];
        int first, last;
        const unsigned char *glyph = glyph_of(*at);
        extent(glyph, &first, &last);
        const int count = glyph_strokes(glyph, strokes);
        for (int k = 0; k < count; k++) {
            const stroke s = strokes[k];
            const double a0 = along + (s.x0 - first) * unit, b0 = up + s.y0 * unit;
            const double a1 = along + (s.x1 - first) * unit, b1 = up + s.y1 * unit;
            strokes[k] =
                style->upward ? (stroke){x + b0, y - a0, x + b1, y - a1} : (stroke){x + a0, y + b0, x + a1, y + b1};
        }
        draw_strokes(canvas, strokes, count, thickness > 0 ? thickness : style->height / 8, style->colour);
        along += (last - first + letter_gap) * unit;
    }
}

// ---- colour

/// CIE 1976 L*a*b* with D65 white to linear sRGB. Source: IEC 61966-2-1, 1999; CIE 15, 2004.
static void lab_to_linear(double lightness, double a, double b, double rgb[3])
{
    const double fy = (lightness + 16) / 116, f[3] = {fy + a / 500, fy, fy - b / 200};
    static const double white[3] = {0.95047, 1, 1.08883};
    double xyz[3];
    for (int k = 0; k < 3; k++)
        xyz[k] = white[k] * (f[k] > 6.0 / 29 ? f[k] * f[k] * f[k] : 3 * 36.0 / 841 * (f[k] - 4.0 / 29));
    rgb[0] = 3.2406 * xyz[0] - 1.5372 * xyz[1] - 0.4986 * xyz[2];
    rgb[1] = -0.9689 * xyz[0] + 1.8758 * xyz[1] + 0.0415 * xyz[2];
    rgb[2] = 0.0557 * xyz[0] - 0.2040 * xyz[1] + 1.0570 * xyz[2];
}

wt_colour wt_colour_map(double position)
{
    // Our own path through CIE LCh: lightness 3 to 97 in even steps, hue from blue (285 deg) through red to yellow
    // (105), chroma in an arch, less where sRGB ends.
    const double t = position > 0 ? fmin(position, 1) : 0;
    const double lightness = 3 + 94 * t, hue = (285 + 180 * t) * pi / 180;
    double rgb[3];
    for (double chroma = 8 + 72 * sin(pi * pow(t, 0.8)); chroma > 0; chroma -= 1) {
        lab_to_linear(lightness, chroma * cos(hue), chroma * sin(hue), rgb);
        if (fmin(rgb[0], fmin(rgb[1], rgb[2])) >= 0 && fmax(rgb[0], fmax(rgb[1], rgb[2])) <= 1) break;
    }
    wt_colour colour = 0;
    for (int k = 0; k < 3; k++) {
        const double linear = fmin(fmax(rgb[k], 0), 1);
        const double coded = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
        colour = colour << 8 | (wt_colour)lrint(255 * coded);
    }
    return colour;
}

// ---- file

static wt_status write_to(const wt_canvas *p, const char *path, int fd)
{
    const int copy = dup(fd);
    FILE *file = copy >= 0 ? fdopen(copy, "wb") : NULL;
    if (!file) {
        if (copy >= 0) close(copy);
        return wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    }
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)p->width,
                       .height = (png_uint_32)p->height,
                       .format = PNG_FORMAT_RGB};
    const int written = png_image_write_to_stdio(&image, file, 0, p->rgb, 0, NULL);
    const int closed = fclose(file);
    if (!written) return wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", path, image.message);
    return closed ? wt_fail(WT_ERR_FILE, "%s: cannot be written: %s", path, strerror(errno)) : WT_OK;
}

wt_status wt_canvas_write_png(const wt_canvas *canvas, const char *path)
{
    wt__atomic_file file;
    wt_status status = wt__atomic_file_open(path, &file);
    if (status) return status;
    status = write_to(canvas, path, file.fd);
    if (!status) return wt__atomic_file_commit(&file, false);
    wt__atomic_file_discard(&file);
    return status;
}
