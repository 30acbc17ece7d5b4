#include "picture.h"

#include "testing.h"

#include <png.h>
#include <stdlib.h>

unsigned char *picture_read(const char *path, int *width, int *height)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_file(&image, path));
    image.format = PNG_FORMAT_RGB;
    unsigned char *rgb = malloc(PNG_IMAGE_SIZE(image));
    assert_non_null(rgb);
    assert_true(png_image_finish_read(&image, NULL, rgb, 0, NULL));
    *width = (int)image.width;
    *height = (int)image.height;
    return rgb;
}
