// What a GPU's partitions keep for the next layout, with stand-ins for the driver: splits are made once, green contexts
// that nobody uses serve the next layout with the same SMs, and all of them go when the device is closed.
#include "support/testing.h"
#include "../engine/device_cuda.h"
#include "../engine/partition_internal.h"

#include <string.h>

enum {
    GPU = 62,
    N_UNITS = 16,
    UNIT_SMS = 8,
    N_SMS = 132,
    MAX_CONTEXTS = 128
}; ///< no machine of the tests has this GPU

static struct {
    int n_splits, n_made, n_alive;
    int most;        ///< alive at a time; 0 = any number
    unsigned joined; ///< resources of the last descriptor
    bool alive[MAX_CONTEXTS];
} driver;

static CUresult set_current(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device)
{
    *device = GPU;
    return CUDA_SUCCESS;
}

static CUresult all_sms(CUdevice device, CUdevResource *resource, int type)
{
    (void)device;
    resource->type = type;
    resource->sm.smCount = N_SMS;
    return CUDA_SUCCESS;
}

static CUresult split(CUdevResource *groups, unsigned int *n_groups, const CUdevResource *input,
                      CUdevResource *remaining, unsigned int flags, unsigned int min_count)
{
    (void)flags, (void)min_count;
    *n_groups = N_UNITS;
    if (!groups) return CUDA_SUCCESS;
    driver.n_splits++;
    for (int k = 0; k < N_UNITS; k++) groups[k] = *input, groups[k].sm.smCount = UNIT_SMS;
    *remaining = *input;
    remaining->sm.smCount = N_SMS - N_UNITS * UNIT_SMS;
    return CUDA_SUCCESS;
}

static CUresult describe(CUdevResourceDesc *desc, CUdevResource *resources, unsigned int n_resources)
{
    (void)resources;
    *desc = NULL;
    driver.joined = n_resources;
    return CUDA_SUCCESS;
}

static CUresult make_context(CUgreenCtx *context, CUdevResourceDesc desc, CUdevice device, unsigned int flags)
{
    (void)desc, (void)device, (void)flags;
    if (driver.most && driver.n_alive == driver.most) return CUDA_ERROR_OUT_OF_MEMORY;
    driver.alive[++driver.n_made] = true;
    driver.n_alive++;
    *context = (CUgreenCtx)&driver.alive[driver.n_made];
    return CUDA_SUCCESS;
}

static CUresult destroy_context(CUgreenCtx context)
{
    bool *alive = (bool *)context;
    if (!*alive) return CUDA_ERROR_INVALID_HANDLE;
    *alive = false;
    driver.n_alive--;
    return CUDA_SUCCESS;
}

static CUresult sms_of(CUgreenCtx context, CUdevResource *resource, int type)
{
    (void)context, (void)type;
    resource->sm.smCount = driver.joined * UNIT_SMS;
    return CUDA_SUCCESS;
}

static CUresult name_of(CUresult result, const char **name)
{
    (void)result;
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
}

static const wt__cuda table = {.CtxSetCurrent = set_current,
                               .CtxGetDevice = get_device,
                               .DeviceGetDevResource = all_sms,
                               .DevSmResourceSplitByCount = split,
                               .DevResourceGenerateDesc = describe,
                               .GreenCtxCreate = make_context,
                               .GreenCtxDestroy = destroy_context,
                               .GreenCtxGetDevResource = sms_of,
                               .GetErrorName = name_of,
                               .GetErrorString = name_of};

static wt__guard guard;

static wt__cuda_device device_with_stand_ins(void)
{
    wt__guard_init(&guard);
    memset(&driver, 0, sizeof driver);
    return (wt__cuda_device){.base = {.guard = &guard, .info = {.n_sms = N_SMS, .partition_sms = UNIT_SMS}},
                             .cuda = &table,
                             .device = GPU,
                             .kept.mutex = PTHREAD_MUTEX_INITIALIZER};
}

/// Of `n` units from `first` on; `n_sms` is checked.
static wt__slice *slice_of(wt__cuda_device *d, bool fine, int first, int n)
{
    wt__cut *cut = NULL;
    wt__units units;
    wt__unit_set set = {0};
    wt__slice *slice = NULL;
    int n_sms = 0;
    for (int k = first; k < first + n; k++) set.has[k] = true;
    assert_ok(wt__cuda_slicing.cut(&d->base, true, fine, &cut, &units));
    assert_true(units.n_units == N_UNITS && units.unit_sms == UNIT_SMS && units.rest_sms == 4);
    assert_ok(wt__cuda_slicing.slice_create(&d->base, cut, &set, 0, &slice, &n_sms));
    assert_int_equal(n_sms, n * UNIT_SMS);
    wt__cuda_slicing.cut_free(cut);
    return slice;
}

static void drop(wt__cuda_device *d, wt__slice *slice) { wt__cuda_slicing.slice_destroy(&d->base, slice); }

static void layouts_that_come_and_go_make_no_more_green_contexts(void **state)
{
    (void)state;
    wt__cuda_device d = device_with_stand_ins();
    for (int loop = 0; loop < 1000; loop++) {
        wt__slice *audio = slice_of(&d, false, 0, 1), *llm = slice_of(&d, false, 1, 15);
        wt__slice *wider = slice_of(&d, false, 0, 8), *rest = slice_of(&d, false, 8, 8); // a resize
        drop(&d, audio), drop(&d, llm);
        drop(&d, wider), drop(&d, rest);
    }
    assert_true(driver.n_made == 4 && driver.n_alive == 4 && driver.n_splits == 1);
    wt__cuda_kept_free(&d);
    assert_int_equal(driver.n_alive, 0);
}

static void a_green_context_in_use_is_not_given_twice(void **state)
{
    (void)state;
    wt__cuda_device d = device_with_stand_ins();
    wt__slice *one = slice_of(&d, false, 0, 4), *two = slice_of(&d, false, 0, 4), *fine = slice_of(&d, true, 0, 4);
    assert_true(one != two && driver.n_made == 3 && driver.n_splits == 2);
    drop(&d, fine);
    wt__slice *three = slice_of(&d, false, 0, 4); // of another split the same units are other SMs
    assert_true(three != fine && driver.n_made == 4);
    drop(&d, two);
    assert_ptr_equal(slice_of(&d, false, 0, 4), two);
    drop(&d, one), drop(&d, two), drop(&d, three);
    wt__cuda_kept_free(&d);
    assert_int_equal(driver.n_alive, 0);
}

static void no_more_than_thirty_two_are_kept_and_the_last_used_ones(void **state)
{
    (void)state;
    wt__cuda_device d = device_with_stand_ins();
    for (int n = 1; n <= 10; n++)
        for (int first = 0; first < 4; first++) drop(&d, slice_of(&d, false, first, n));
    assert_true(driver.n_made == 40 && driver.n_alive == 32);
    drop(&d, slice_of(&d, false, 3, 10));
    assert_int_equal(driver.n_made, 40);
    drop(&d, slice_of(&d, false, 0, 1)); // the first one is gone
    assert_true(driver.n_made == 41 && driver.n_alive == 32);
    wt__cuda_kept_free(&d);
    assert_int_equal(driver.n_alive, 0);
}

static void spare_ones_make_room_when_the_driver_has_none(void **state)
{
    (void)state;
    wt__cuda_device d = device_with_stand_ins();
    driver.most = 2;
    wt__slice *one = slice_of(&d, false, 0, 1);
    drop(&d, slice_of(&d, false, 1, 1));
    wt__slice *two = slice_of(&d, false, 2, 1); // in place of the spare one
    assert_true(driver.n_made == 3 && driver.n_alive == 2);
    drop(&d, one), drop(&d, two);
    wt__cuda_kept_free(&d);
    assert_int_equal(driver.n_alive, 0);
}

static void a_lost_device_keeps_nothing(void **state)
{
    (void)state;
    wt__cuda_device d = device_with_stand_ins();
    wt__slice *one = slice_of(&d, false, 0, 1), *two = slice_of(&d, false, 1, 1);
    drop(&d, one);
    atomic_store(&wt__cuda_lost[GPU], true);
    drop(&d, two);
    assert_int_equal(driver.n_alive, 1);
    wt__cuda_kept_free(&d);
    assert_int_equal(driver.n_alive, 0);
    atomic_store(&wt__cuda_lost[GPU], false);
}

static void kept_ones_of_an_armed_device_are_destroyed_later(void **state)
{
    (void)state;
    wt__cuda_device closed = device_with_stand_ins(), other = closed;
    drop(&closed, slice_of(&closed, false, 0, 1));
    atomic_store(&guard.armed, true);
    wt__cuda_kept_free(&closed);
    assert_true(driver.n_alive == 1 && guard.n_waiting == 1);
    atomic_store(&guard.armed, false);
    guard.aside->release(&other.base, guard.aside);
    assert_int_equal(driver.n_alive, 0);
    wt__cuda_kept_free(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts_that_come_and_go_make_no_more_green_contexts),
                                       cmocka_unit_test(a_green_context_in_use_is_not_given_twice),
                                       cmocka_unit_test(no_more_than_thirty_two_are_kept_and_the_last_used_ones),
                                       cmocka_unit_test(spare_ones_make_room_when_the_driver_has_none),
                                       cmocka_unit_test(a_lost_device_keeps_nothing),
                                       cmocka_unit_test(kept_ones_of_an_armed_device_are_destroyed_later)};
    return cmocka_run_group_tests_name("partition: what is kept", tests, NULL, NULL);
}
