// The schema is the structs of simulate.h: libcyaml fills them, wt_simulate checks their values.
#include "plan.h"
#include "yaml_message.h"

#include <errno.h>
#include <string.h>
#include <warptone/names.h>

#define OPTIONAL CYAML_FLAG_OPTIONAL
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const cyaml_strval_t policies[] = {
    {"fifo", WT_POLICY_FIFO},
    {"shortest-job", WT_POLICY_SHORTEST_JOB},
    {"priority", WT_POLICY_PRIORITY},
    {"earliest-deadline", WT_POLICY_EARLIEST_DEADLINE},
    {"weighted-fair", WT_POLICY_WEIGHTED_FAIR},
};
static const cyaml_strval_t tiers[] = {
    {"best-effort", WT_TIER_BEST_EFFORT},
    {"burstable", WT_TIER_BURSTABLE},
    {"guaranteed", WT_TIER_GUARANTEED},
};
static const cyaml_strval_t kinds[] = {
    {"periodic", WT_PLAN_PERIODIC},
    {"poisson", WT_PLAN_POISSON},
    {"decode", WT_PLAN_DECODE},
};

static const cyaml_schema_field_t partition_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, wt_plan_partition, name, 1, 64),
    CYAML_FIELD_INT("sms", CYAML_FLAG_DEFAULT, wt_plan_partition, sms),
    CYAML_FIELD_ENUM("policy", OPTIONAL | CYAML_FLAG_STRICT, wt_plan_partition, policy, policies, COUNT(policies)),
    CYAML_FIELD_INT("lanes", OPTIONAL, wt_plan_partition, lanes),
    CYAML_FIELD_FLOAT("memory_mb", OPTIONAL, wt_plan_partition, memory_mb),
    CYAML_FIELD_FLOAT("bandwidth_share", OPTIONAL, wt_plan_partition, bandwidth_share),
    CYAML_FIELD_FLOAT("time_share", OPTIONAL, wt_plan_partition, time_share),
    CYAML_FIELD_FLOAT("pacing_share", OPTIONAL, wt_plan_partition, pacing_share),
    CYAML_FIELD_BOOL("no_preemption", OPTIONAL, wt_plan_partition, no_preemption),
    CYAML_FIELD_FLOAT("blocking_us", OPTIONAL, wt_plan_partition, blocking_us),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t partition_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, wt_plan_partition, partition_fields)};

static const cyaml_schema_field_t load_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, wt_plan_load, name, 1, 64),
    CYAML_FIELD_STRING_PTR("partition", CYAML_FLAG_POINTER, wt_plan_load, partition, 1, 64),
    CYAML_FIELD_ENUM("kind", CYAML_FLAG_STRICT, wt_plan_load, kind, kinds, COUNT(kinds)),
    CYAML_FIELD_ENUM("tier", OPTIONAL | CYAML_FLAG_STRICT, wt_plan_load, tier, tiers, COUNT(tiers)),
    CYAML_FIELD_INT("count", OPTIONAL, wt_plan_load, count),
    CYAML_FIELD_FLOAT("cost_us", CYAML_FLAG_DEFAULT, wt_plan_load, cost_us),
    CYAML_FIELD_FLOAT("spread", OPTIONAL, wt_plan_load, spread),
    CYAML_FIELD_FLOAT("worst_us", OPTIONAL, wt_plan_load, worst_us),
    CYAML_FIELD_INT("measured_on_sms", OPTIONAL, wt_plan_load, measured_on_sms),
    CYAML_FIELD_FLOAT("serial_part", OPTIONAL, wt_plan_load, serial_part),
    CYAML_FIELD_FLOAT("memory_mb", OPTIONAL, wt_plan_load, memory_mb),
    CYAML_FIELD_FLOAT("bandwidth_share", OPTIONAL, wt_plan_load, bandwidth_share),
    CYAML_FIELD_INT("priority", OPTIONAL, wt_plan_load, priority),
    CYAML_FIELD_FLOAT("weight", OPTIONAL, wt_plan_load, weight),
    CYAML_FIELD_INT("flow", OPTIONAL, wt_plan_load, flow),
    CYAML_FIELD_FLOAT("period_us", OPTIONAL, wt_plan_load, period_us),
    CYAML_FIELD_FLOAT("deadline_us", OPTIONAL, wt_plan_load, deadline_us),
    CYAML_FIELD_FLOAT("rate_hz", OPTIONAL, wt_plan_load, rate_hz),
    CYAML_FIELD_FLOAT("prompt_us", OPTIONAL, wt_plan_load, prompt_us),
    CYAML_FIELD_INT("tokens", OPTIONAL, wt_plan_load, tokens),
    CYAML_FIELD_FLOAT("pause_us", OPTIONAL, wt_plan_load, pause_us),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t load_value = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, wt_plan_load, load_fields)};

static const cyaml_schema_field_t plan_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, wt_plan, name, 1, 64),
    CYAML_FIELD_STRING_PTR("description", CYAML_FLAG_POINTER | OPTIONAL, wt_plan, description, 0, 1000),
    CYAML_FIELD_INT("devices", OPTIONAL, wt_plan, devices),
    CYAML_FIELD_INT("sms", CYAML_FLAG_DEFAULT, wt_plan, sms),
    CYAML_FIELD_FLOAT("memory_mb", OPTIONAL, wt_plan, memory_mb),
    CYAML_FIELD_FLOAT("seconds", OPTIONAL, wt_plan, seconds),
    CYAML_FIELD_INT("seed", OPTIONAL, wt_plan, seed),
    CYAML_FIELD_SEQUENCE_COUNT("partitions", CYAML_FLAG_POINTER, wt_plan, partitions, n_partitions, &partition_value, 1,
                               64),
    CYAML_FIELD_SEQUENCE_COUNT("loads", CYAML_FLAG_POINTER, wt_plan, loads, n_loads, &load_value, 1, 256),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t plan_value = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, wt_plan, plan_fields)};

static wt_status refuse_key(const char *path, const char *key, int line)
{
    static const cyaml_schema_field_t *const tables[] = {plan_fields, partition_fields, load_fields};
    const char *known[COUNT(plan_fields) + COUNT(partition_fields) + COUNT(load_fields)];
    int n = 0;
    for (size_t k = 0; k < COUNT(tables); k++)
        for (const cyaml_schema_field_t *field = tables[k]; field->key; field++) known[n++] = field->key;
    return wt_fail(WT_ERR_FORMAT, "%s:%d: unknown key '%s'; the nearest is '%s'", path, line, key,
                   wt_nearest_name(key, known, n));
}

wt_status plan_load(const char *path, wt_plan **plan)
{
    yaml_complaint c = {.line = 0};
    const cyaml_config_t config = yaml_config(&c);
    *plan = NULL;
    errno = 0;
    cyaml_err_t error = cyaml_load_file(path, &config, &plan_value, (cyaml_data_t **)plan, NULL);
    if (error == CYAML_ERR_FILE_OPEN) return wt_fail(WT_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    if (error && yaml_unknown_key(&c)) return refuse_key(path, yaml_unknown_key(&c), c.line);
    if (error) return yaml_refuse(path, &c, error);
    return *plan ? WT_OK : wt_fail(WT_ERR_FORMAT, "%s: holds no plan, want sms, partitions and loads", path);
}

void plan_free(wt_plan *plan)
{
    yaml_complaint c = {.line = 0};
    const cyaml_config_t config = yaml_config(&c);
    cyaml_free(&config, &plan_value, plan, 0);
}
