# SPDX-License-Identifier: MIT
"""Rules for jobs and claims, which hold at any time. They judge records of hosts and of Slurm
(observer.Observer):

    {'kind': 'host', 't': 12.3, 'name': 'n1', 'is_on': true, 'is_linked': true, 'has_slurmd': true,
     'claims': {'slurm:lab:7.0': {'small': 1}} or null, 'guests': ['7'], 'steps': ['7']}
    {'kind': 'queue', 't': 12.2, 'jobs': {'7': {'state': 'RUNNING', 'life': 0, 'host': 'n1', 'wants': {'small': 1}}},
     'nodes': {'n1': {'state': 'mixed', 'reason': '', 'gres': 'vgpu:large:4,vgpu:small:8'}}}
    {'kind': 'act', 't': 12.1, 'name': 'drain', 'words': ['n1'], 'is_done': true}
    {'kind': 'calm', 't': 99.0, 'left': ['a claim of slurm:lab:7.0 on n1']}
    {'kind': 'words', 't': 99.0, 'host': 'n1', 'text': 'job 7 life 0: the VF is not empty'}
    {'kind': 'ended', 't': 99.0, 'job': '7', 'state': 'FAILED', 'has_lost_device': false}

't' is the time when the look began. `claims` are null unless vgpud answers and its GPU is in
service. `guests` are jobs with a process that lived throughout the look at the claims, so that a
guest without a claim needs no second look. Rules that compare Slurm with a host give both some time
to agree.
"""

PREFIX = 'slurm:lab:'
QUEUE_IS_FRESH_S = 4
HOST_IS_FRESH_S = 2
STARTED_S = 12   # until a job that runs must have its VFs, also on a slow machine
HEALTH_S = 10    # HealthCheckInterval of the fleet
ENDED_S = HEALTH_S + 20
DRAIN_S = 5
ON_HOST = ('RUNNING', 'CONFIGURING', 'COMPLETING', 'SUSPENDED', 'STOPPED')
ENDS = ('COMPLETED', 'CANCELLED')


def life_of(owner):
    """('7', 0) of 'slurm:lab:7.0', or None."""
    if not owner.startswith(PREFIX):
        return None
    job, life = owner[len(PREFIX):].rsplit('.', 1)
    return job, int(life)


def count(claims, job):
    """VFs of all lives of a job by profile."""
    found = {}
    for owner, profiles in claims.items():
        if (life_of(owner) or (None,))[0] == job:
            for profile, number in profiles.items():
                found[profile] = found.get(profile, 0) + number
    return found


class Checker:
    """Takes records in the order of their ends; `violations` are (rule, text), each once."""

    def __init__(self):
        self.violations = []
        self.queue = None
        self.hosts = {}
        self.wants = {}     # job: VFs by profile
        self.drained = {}   # host: when the operator drained it
        self.since = {}     # (rule, host, key): since when it has been wrong
        self.is_gpu_lost = False  # at least once

    def add(self, record):
        getattr(self, 'add_' + record['kind'])(record)

    def report(self, rule, text):
        if (rule, text) not in self.violations:
            self.violations.append((rule, text))

    def hold(self, rule, where, now, limit_s, wrong):
        """Reports what has been wrong at `where` for the limit without a break. `wrong`: {key:
        text} of what is wrong now."""
        before = {key for key in self.since if key[:2] == (rule, where)}
        for key in before - {(rule, where, what) for what in wrong}:
            del self.since[key]
        for what, text in wrong.items():
            began = self.since.setdefault((rule, where, what), now)
            if now - began >= limit_s:
                self.report(rule, f'{text} for {limit_s} s')

    def forget(self, where):
        self.since = {key: began for key, began in self.since.items() if key[1] != where}

    # --- records

    def add_queue(self, record):
        self.queue = record
        if record['jobs'] is None:
            return
        for job, known in record['jobs'].items():
            self.wants[job] = known['wants']
        for host, began in self.drained.items():
            node = record['nodes'].get(host)
            if node and record['t'] - began > DRAIN_S and 'drain' not in node['state'] and 'drng' not in node['state']:
                self.report('drains_of_the_operator_stay', f'{host}, which the operator drained, is {node["state"]}')

    def add_act(self, record):
        if record['name'] == 'drain' and record['is_done']:
            self.drained[record['words'][0]] = record['t']
        self.is_gpu_lost |= record['name'] == 'kill_softgpu' and record['is_done']
        if record['name'] == 'resume':
            self.drained.pop(record['words'][0], None)

    def add_calm(self, record):
        for text in record['left']:
            self.report('everything_heals', text)

    def add_words(self, record):
        self.report('guests_are_alone', f'{record["host"]}: {record["text"]}')

    def add_ended(self, record):
        may_fail = record['has_lost_device'] and self.is_gpu_lost
        if record['state'] not in ENDS and not (record['state'] == 'FAILED' and may_fail):
            self.report('jobs_end_as_asked', f'job {record["job"]} ended as {record["state"]}')

    def add_host(self, record):
        self.hosts[record['name']] = record
        if not record['is_on'] or record['claims'] is None:
            self.forget(record['name'])
            return
        self.guests_keep_their_vfs(record)
        self.a_life_is_on_one_host(record)
        queue = self.queue
        if queue is None or queue['jobs'] is None or record['t'] - queue['t'] > QUEUE_IS_FRESH_S:
            self.forget(record['name'])
            return
        self.claims_are_where_the_job_runs(record, queue['jobs'])
        self.running_jobs_have_their_vfs(record, queue['jobs'])
        self.claims_end_with_their_jobs(record, queue)

    # --- rules

    def guests_keep_their_vfs(self, record):
        for job in record['guests']:
            wants, has = self.wants.get(job), count(record['claims'], job)
            if wants and any(has.get(profile, 0) < number for profile, number in wants.items()):
                self.report('guests_keep_their_vfs', f'a guest of job {job} lives on {record["name"]}, where the job has '
                            f'{has} instead of {wants}')

    def a_life_is_on_one_host(self, record):
        for owner in filter(life_of, record['claims']):
            for other in self.hosts.values():
                if other['name'] != record['name'] and other['is_on'] and owner in (other['claims'] or {}) and \
                        record['t'] - other['t'] < HOST_IS_FRESH_S:
                    self.report('a_life_is_on_one_host', f'{owner} has VFs on {other["name"]} and {record["name"]}')

    def claims_are_where_the_job_runs(self, record, jobs):
        for owner in filter(life_of, record['claims']):
            job, life = life_of(owner)
            known = jobs.get(job)
            if known and known['state'] in ON_HOST and known['life'] == life and known['host'] != record['name']:
                self.report('a_life_is_on_one_host', f'{owner} has VFs on {record["name"]} and runs on {known["host"]}')

    def running_jobs_have_their_vfs(self, record, jobs):
        """Skips a job without a step: it may have ended before Slurm knows of it."""
        wrong = {}
        for job, known in jobs.items():
            has = record['claims'].get(f'{PREFIX}{job}.{known["life"]}', {})
            if known['state'] == 'RUNNING' and known['host'] == record['name'] and job in record['steps'] and \
                    record['is_linked'] and record['has_slurmd'] and has != known['wants']:
                wrong[job, known['life']] = f'job {job} runs on {record["name"]} with {has} instead of {known["wants"]}'
        self.hold('running_jobs_have_their_vfs', record['name'], record['t'], STARTED_S, wrong)

    def claims_end_with_their_jobs(self, record, queue):
        """Skips hosts that do not answer Slurm, because it starts no health checks there."""
        state = queue['nodes'].get(record['name'], {}).get('state', 'down')
        wrong = {}
        if record['is_linked'] and record['has_slurmd'] and '*' not in state and 'down' not in state:
            for owner in filter(life_of, record['claims']):
                job, life = life_of(owner)
                known = queue['jobs'].get(job, {'state': 'gone', 'life': life, 'host': ''})
                is_on_host = known['state'] in ON_HOST and known['life'] == life
                if not is_on_host and job not in record['guests'] + record['steps']:
                    wrong[owner] = f'{owner}, which is over ({known["state"]}), has VFs on {record["name"]}'
        self.hold('claims_end_with_their_jobs', record['name'], record['t'], ENDED_S, wrong)
