// Commands that read a cluster, with a real API server: output and exit codes.

import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import { makeCertificates } from '@penstock/agent/testing/certificates'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { root } from '../command.ts'
import { programOf, penstock as runPenstock } from '../program.ts'
import { hasTerminals, keys, Terminal } from '../terminal.ts'
import { Api, Fleet } from './fleet.ts'
import { eventually, heartbeatUrl, OperatorProcess, system } from './process.ts'
import { outerAddress } from './receiver.ts'

const missing = missingForCluster(0)

const pipeline = (name: string, selector: object, more: object = {}) => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name, namespace: 'shop' },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', selector }],
    transforms: [{ name: 'parse', type: 'remap', config: { source: '.team = "blue"' } }],
    sinks: [{ name: 'store', ref: { kind: 'ClusterSink', name: 'loki' } }],
    ...more,
  },
})

describe.skipIf(missing !== undefined)(`penstock with a cluster${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let folder: string

  const penstock = (...args: string[]) => runPenstock(args, { env: { KUBECONFIG: cluster.kubeconfig } })

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    folder = await mkdtemp(join(tmpdir(), 'penstock-cli-'))
    resources.defer(() => rm(folder, { recursive: true }))
    await cluster.kubectl(['apply', '--server-side', '-k', join(root, 'crds')])
    await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s'])
    await cluster.apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'blue' } } },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'penstock-system' } },
    )
    await cluster.apply(
      {
        apiVersion: 'penstock.dev/v1alpha1',
        kind: 'ClusterSink',
        metadata: { name: 'loki' },
        spec: {
          type: 'log_aggregator',
          allowedNamespaces: { from: 'All' },
          config: {
            endpoint: 'http://loki.example:3100',
            labels: { app: 'x' },
            out_of_order_action: 'accept',
            encoding: { codec: 'json' },
          },
        },
      },
      {
        apiVersion: 'penstock.dev/v1alpha1',
        kind: 'Agent',
        metadata: { name: 'node', namespace: 'penstock-system' },
        spec: { mode: 'Node', pipelines: { namespaceSelector: { matchLabels: { team: 'blue' } } } },
      },
      pipeline('web', { pods: { matchLabels: { app: 'web' } } }),
      pipeline('other', { pods: { matchLabels: { app: 'other' } } }),
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: 'web-1',
          namespace: 'shop',
          labels: { app: 'web' },
          annotations: { 'penstock.dev/exclude-containers': 'proxy' },
        },
        spec: {
          nodeName: 'n1',
          containers: [
            { name: 'web', image: 'x' },
            { name: 'proxy', image: 'x' },
          ],
        },
      },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'left-1', namespace: 'shop', labels: { app: 'web', 'penstock.dev/exclude': 'true' } },
        spec: { nodeName: 'n1', containers: [{ name: 'web', image: 'x' }] },
      },
    )
    const at = '2026-01-01T00:00:00Z'
    const condition = (type: string, status: string, reason: string, message = '') => ({
      type,
      status,
      reason,
      message,
      observedGeneration: 1,
      lastTransitionTime: at,
    })
    const status = {
      observedGeneration: 1,
      programmedGeneration: 1,
      conditions: [
        condition('Accepted', 'True', 'Valid'),
        condition('Programmed', 'False', 'NodesFailed', '1 of 2 agents failed.'),
        condition('Ready', 'False', 'NodesFailed', '1 of 2 agents failed.'),
      ],
      agents: [
        {
          name: 'penstock-system/node',
          revision: '9f3c2a1b',
          desired: 2,
          current: 1,
          failed: 1,
          stale: 0,
          failures: [{ node: 'n9', reason: 'BufferUnwritable', message: 'data dir is read-only' }],
        },
      ],
      components: [
        {
          name: 'parse',
          kind: 'transform',
          errors: '3',
          lastError: { reason: 'FunctionCallError', message: 'parse_json: expected value', at, node: 'n9' },
        },
      ],
    }
    await cluster.kubectl([
      '-n',
      'shop',
      'patch',
      'pipeline',
      'web',
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status }),
    ])
  })
  afterAll(() => resources.disposeAsync())

  test('status shows a Pipeline as a tree, with failures and their locations', async () => {
    const result = await penstock('status', 'web', '-n', 'shop')
    expect(result.stdout).toBe(`Pipeline shop/web
  Accepted     True    Valid
  Programmed   False   NodesFailed: 1 of 2 agents failed.
  Ready        False   NodesFailed
  source app (orchestrator_logs)
  └─ transform parse (remap)
     │    3 errors; the last: FunctionCallError: parse_json: expected value (n9, 2026-01-01T00:00:00Z)
     └─ sink store (ClusterSink loki)
  agent     penstock-system/node: 1/2 run revision 9f3c2a1b, 1 failed
            n9: BufferUnwritable: data dir is read-only
`)
    expect(result.code).toBe(1)
    const absent = await penstock('status', 'gone', '-n', 'shop')
    expect([absent.code, absent.stderr]).toEqual([1, 'There is no Pipeline gone in namespace shop.\n'])
  })

  test('why shows the Pipelines that read a pod, and those that do not with the reason', async () => {
    const web = await penstock('why', 'web-1', '-n', 'shop')
    expect(web.stdout, web.stderr).toBe(`Pod shop/web-1 (Pending) on node n1
  Pipeline shop/other
    does not: source app: its selector app=other does not match the labels of the pod (app=web)
  Pipeline shop/web
    reads it: source app: containers web; left out: proxy
    the agent of its node reads it; not yet running on all nodes: NodesFailed: 1 of 2 agents failed.
    read positions are unknown: There is no Service penstock-operator in namespace penstock-system: if Penstock is installed in another one, set it with --operator-namespace.
Its logs are read.
`)
    const left = await penstock('why', 'left-1', '-n', 'shop')
    expect(left.stdout).toContain('has the label penstock.dev/exclude: "true"')
    expect(left.code).toBe(1)
  })

  test('rollout pauses an Agent, shows it, and retries a Pipeline', async () => {
    const agent = ['node', '-n', 'penstock-system']
    expect((await penstock('rollout', 'pause', ...agent)).stdout).toBe(
      'The rollout of Agent penstock-system/node is paused.\n',
    )
    const status = await penstock('rollout', 'status', ...agent)
    expect([status.stdout.split('\n')[0], status.code]).toEqual(['Agent penstock-system/node (paused)', 1])
    const retried = await penstock('rollout', 'retry', 'web', '-n', 'shop')
    const says = 'Pipeline shop/web is not rolled back, so there is nothing to retry.\n'
    expect([retried.stdout, retried.code]).toEqual([says, 0])
    const at = await cluster.kubectl(['-n', 'shop', 'get', 'pipeline', 'web', '-o', 'jsonpath={.metadata.annotations}'])
    expect(JSON.parse(at)).toHaveProperty(['penstock.dev/retry'])
    const unknown = await penstock('rollout', 'stauts', 'node')
    expect([unknown.code, unknown.stderr]).toEqual([64, expect.stringContaining('Did you mean `status`?')])
  })

  test('support-bundle contains resources and their status, but no secrets', async () => {
    const secret = 'hunter2-of-the-store'
    await cluster.apply(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'penstock-x', namespace: 'shop' },
        stringData: { p: secret },
      },
      {
        apiVersion: 'penstock.dev/v1alpha1',
        kind: 'Sink',
        metadata: { name: 'search', namespace: 'shop' },
        spec: {
          type: 'search_engine',
          config: {
            endpoints: [`http://me:${secret}@search:9200`],
            auth: { strategy: 'basic', user: 'me', password: secret },
          },
        },
      },
    )
    const file = join(folder, 'bundle.tar.gz')
    const result = await penstock('support-bundle', '-o', file)
    expect([result.code, result.stderr]).toEqual([0, ''])
    const text = gunzipSync(await readFile(file)).toString('latin1')
    expect(text).toContain('reason: BufferUnwritable')
    expect(text).toContain('http://***@search:9200')
    expect(text).toContain('password: "***"')
    expect(text).not.toContain(secret)
  })

  test('diff shows the effect of a file on agents', async () => {
    const file = join(folder, 'web.yaml')
    const same = pipeline('web', { pods: { matchLabels: { app: 'web' } } })
    await writeFile(file, JSON.stringify(same))
    const none = await penstock('diff', '-f', file)
    expect([none.stdout, none.stderr, none.code]).toEqual(['No difference.\n', '', 0])

    await writeFile(file, JSON.stringify(same).replace('blue', 'green'))
    const some = await penstock('diff', '-f', file)
    expect(some.code).toBe(1)
    expect(some.stdout).toContain('-    source: .team = "blue"\n+    source: .team = "green"\n')
    expect(some.stdout.split('\n').filter((line) => /^[-+] /.test(line))).toHaveLength(2)
  })

  // From here on, an operator and agents run, and overwrite the status that earlier tests have written.
  describe('with an operator of two replicas, and agents', { timeout: 600_000 }, () => {
    let fleet: Fleet
    let leader: OperatorProcess
    let second: OperatorProcess
    let secondUrl: string
    const tokens = new Map<string, string>()

    beforeAll(async () => {
      const { kubeconfig } = cluster
      const api = resources.use(await Api.start(cluster))
      leader = resources.use(OperatorProcess.start({ kubeconfig, heartbeats: await freePort() }))
      await leader.leading()
      // Agents and commands connect to the replica that is not the leader, which has no data and forwards everything.
      const port = await freePort()
      secondUrl = heartbeatUrl(port)
      second = resources.use(OperatorProcess.start({ kubeconfig, heartbeats: port }))
      await second.logged('Agents may report')
      const live = { name: 'live', labels: { team: 'blue' } }
      await cluster.apply(
        { apiVersion: 'v1', kind: 'Namespace', metadata: live },
        {
          apiVersion: 'penstock.dev/v1alpha1',
          kind: 'Agent',
          metadata: { name: 'node', namespace: system },
          spec: {
            mode: 'Node',
            pipelines: {
              namespaceSelector: { matchLabels: { team: 'blue' } },
              clusterPipelines: { selector: {} },
            },
            rollout: { canary: { percent: 100, bake: '1s' }, paused: false },
          },
        },
        ...['one', 'other'].map((name) => ({
          apiVersion: 'penstock.dev/v1alpha1',
          kind: 'Pipeline',
          metadata: { name, namespace: 'live' },
          spec: {
            sources: [{ name: 'app', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app: name } } } }],
            transforms: [{ name: 'mark', type: 'remap', config: { source: `.mark = "${name}"\ndel(.orchestrator)` } }],
            sinks: [{ name: 'out', type: 'blackhole' }],
          },
        })),
        {
          apiVersion: 'penstock.dev/v1alpha1',
          kind: 'ClusterPipeline',
          metadata: { name: 'demo' },
          spec: {
            mode: 'Node',
            sources: [{ name: 'in', type: 'demo_logs', config: { format: 'json', interval: 0.1 } }],
            sinks: [{ name: 'out', type: 'blackhole' }],
          },
        },
      )
      const roles = parseAllDocuments(readFileSync(join(root, 'operator/install.yaml'), 'utf8'))
        .map((document) => document.toJS() as { kind: string; metadata: { name: string } })
        .filter(({ kind, metadata }) => /Role$/.test(kind) && /^penstock-(view|edit|cli)$/.test(metadata.name))
      await cluster.apply(...roles)
      for (const [name, role] of [
        ['author', 'penstock-edit'],
        ['onlooker', 'penstock-view'],
      ] as const) {
        await cluster.kubectl(['create', 'serviceaccount', name, '-n', 'live'])
        await cluster.kubectl([
          ...['create', 'rolebinding', name, '-n', 'live', `--clusterrole=${role}`, `--serviceaccount=live:${name}`],
        ])
        tokens.set(name, (await cluster.kubectl(['create', 'token', name, '-n', 'live'])).trim())
      }
      fleet = resources.use(await Fleet.start(api, { agent: 'node', nodes: 2, operatorUrl: secondUrl, kubeconfig }))
      for (const [index, name] of ['one', 'other'].entries()) {
        const made = await api.request<{ metadata: { uid: string } }>('POST', '/api/v1/namespaces/live/pods', {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name, labels: { app: name } },
          spec: {
            nodeName: fleet.members[index]?.node,
            containers: [{ name: 'app', image: 'app' }],
            automountServiceAccountToken: false,
          },
        })
        const logs = join(fleet.members[index]?.folder ?? '', 'logs', `live_${name}_${made.metadata.uid}`, 'app')
        mkdirSync(logs, { recursive: true })
        const write = () =>
          appendFileSync(join(logs, '0.log'), `${new Date().toISOString()} stdout F hello of ${name}\n`)
        const writing = setInterval(write, 50)
        resources.defer(() => clearInterval(writing))
      }
      await eventually(async () => {
        for (const path of [
          'namespaces/live/pipelines/one',
          'namespaces/live/pipelines/other',
          'clusterpipelines/demo',
        ]) {
          const { status } = await api.get(`/apis/penstock.dev/v1alpha1/${path}`)
          expect((status?.['conditions'] as { type: string; status: string }[] | undefined) ?? []).toContainEqual(
            expect.objectContaining({ type: 'Programmed', status: 'True', reason: 'Programmed' }),
          )
        }
      }, 600_000)
    }, 900_000)

    const as = (name: string) => ['--operator-url', secondUrl, '--token', tokens.get(name) ?? '']
    /** Runs a command that does not end by itself, and ends it when the expected output appears. */
    function follow(...args: string[]) {
      const { command, args: main, env } = programOf('operator')
      const child: ChildProcess = spawn(command, [...main, ...args], {
        env: { ...process.env, ...env, KUBECONFIG: cluster.kubeconfig },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const printed = { out: '', err: '' }
      child.stdout?.on('data', (part) => {
        printed.out += part
      })
      child.stderr?.on('data', (part) => {
        printed.err += part
      })
      const ended = new Promise<number | null>((done) => child.once('close', done))
      return {
        printed,
        lines: () => printed.out.split('\n').filter((line) => line !== ''),
        end: async () => {
          child.kill('SIGINT')
          return ended
        },
        async [Symbol.asyncDispose]() {
          child.kill('SIGKILL')
          await ended
        },
      }
    }

    test('tap shows events of one Pipeline from all agents that run it, and no others', async () => {
      await using tap = follow('tap', 'one', '-n', 'live', '--meta', ...as('author'))
      await eventually(() => expect(tap.lines().length, tap.printed.err).toBeGreaterThan(5), 120_000)
      for (const line of tap.lines()) {
        const { node: where, component_id: id, event } = JSON.parse(line)
        expect(where).toBe('node-0000')
        expect(['live/one/app', 'live/one/mark']).toContain(id)
        expect(event.message).toBe('hello of one')
      }
      expect(tap.printed.err).toContain('Pipeline live/one: 2 agents are asked.\n')
      expect(await tap.end()).toBe(0)
      // Without observers, the agents stop.
      expect(leader.log).toContain('"user":"system:serviceaccount:live:author"')
      expect(leader.log + second.log).not.toContain(tokens.get('author'))
    })

    test('tap shows the output of a component or the input of a sink, in another format, with a limit', async () => {
      await using tap = follow(
        ...['tap', 'one', '-n', 'live', '-c', 'out', '--limit', '2', '--format', 'logfmt', '-q', ...as('author')],
      )
      await eventually(() => expect(tap.lines().length, tap.printed.err).toBeGreaterThan(3), 120_000)
      for (const line of tap.lines()) expect(line).toMatch(/\bmark=one\b/)
      expect(tap.printed.err).toBe('')
      await using short = follow('tap', 'one', '-n', 'live', '-c', 'mark', '--for', '3s', '-l', '1', ...as('author'))
      await eventually(() => expect(short.printed.err).toContain('It ends after 3 s.'), 120_000)
      expect(short.lines().length).toBeLessThanOrEqual(4)
    })

    test.each([
      {
        args: ['one', '-n', 'live'],
        who: 'onlooker',
        says: 'may not create pipelines/tap.penstock.dev "one" in namespace live',
      },
      {
        args: ['web', '-n', 'shop'],
        who: 'author',
        says: 'may not create pipelines/tap.penstock.dev "web" in namespace shop',
      },
      { args: ['demo', '--cluster'], who: 'author', says: 'may not create clusterpipelines/tap.penstock.dev "demo"' },
      { args: ['gone', '-n', 'live'], who: 'author', says: 'There is no Pipeline live/gone.', code: 1 },
      { args: ['one', '-n', 'live', '-c', 'on'], who: 'author', says: 'there are: app, mark, out.', code: 1 },
      {
        args: ['one', '-n', 'live', '--node', 'n7'],
        who: 'author',
        says: 'it runs on: node-0000, node-0001.',
        code: 1,
      },
      { args: ['one', '-n', 'live'], who: 'nobody', says: 'The API server does not know this token' },
    ])('tap $args of $who is rejected: $says', async ({ args, who, says, code = 69 }) => {
      tokens.set('nobody', 'x.y.z')
      const result = await penstock('tap', ...args, ...as(who))
      expect([result.code, result.stdout]).toEqual([code, ''])
      expect(result.stderr).toContain(says)
    })

    test('a user with the right to impersonate gets exactly the permissions of the other user', async () => {
      const observer = 'system:serviceaccount:live:onlooker'
      const create = (...args: string[]) => cluster.kubectl(['create', ...args, '-n', 'live'])
      await create('serviceaccount', 'manager')
      const may = ['--verb=impersonate', '--resource=serviceaccounts', '--resource-name=onlooker']
      await create('role', 'manager', ...may)
      await create('rolebinding', 'manager', '--role=manager', '--serviceaccount=live:manager')
      tokens.set('manager', (await create('token', 'manager')).trim())
      const acting = (who: string, user: string, ...groups: string[]) => [
        ...['--as', user, ...groups.flatMap((group) => ['--as-group', group])],
        ...as(who),
      ]
      const top = ['top', '-n', 'live', '--once', '-o', 'json']
      const shown = await penstock(...top, ...acting('manager', observer))
      expect([shown.code, shown.stderr]).toEqual([0, ''])
      expect(JSON.parse(shown.stdout).pipelines).toHaveLength(2)
      for (const [args, says] of [
        [[...top, ...as('manager')], 'system:serviceaccount:live:manager may not get pipelines.penstock.dev'],
        [
          ['tap', 'one', '-n', 'live', ...acting('manager', observer)],
          `${observer} may not create pipelines/tap.penstock.dev "one" in namespace live`,
        ],
        [
          [...top, ...acting('manager', 'system:serviceaccount:live:author')],
          'may not impersonate serviceaccounts "author" in namespace live.',
        ],
        [[...top, ...acting('manager', observer, 'system:masters')], 'may not impersonate groups "system:masters".'],
        [[...top, ...acting('author', 'admin')], 'may not impersonate users "admin".'],
      ] as const) {
        const refused = await penstock(...args)
        expect([refused.code, refused.stdout]).toEqual([69, ''])
        expect(refused.stderr).toContain(says)
      }
    })

    test('a kubeconfig with a client certificate is not sufficient, and the message explains the alternative', async () => {
      await using certificates = await makeCertificates()
      const { key, crt } = await certificates.issue('me')
      const file = join(folder, 'certificate.kubeconfig')
      const config = JSON.parse(await cluster.kubectl(['config', 'view', '--raw', '-o', 'json']))
      config.users = [{ name: config.users[0].name, user: { 'client-certificate': crt, 'client-key': key } }]
      await writeFile(file, JSON.stringify(config))
      const result = await penstock('tap', 'one', '-n', 'live', '--kubeconfig', file)
      expect(result.code).toBe(64)
      expect(result.stderr).toContain('--token "$(kubectl create token NAME -n NAMESPACE)"')
    })

    test('top prints rates of Pipelines, as exact numbers and as JSON', async () => {
      const result = await penstock('top', '-n', 'live', '--once', '-o', 'json', ...as('onlooker'))
      expect([result.code, result.stderr]).toEqual([0, ''])
      const { pipelines } = JSON.parse(result.stdout)
      expect(pipelines.map(({ name }: { name: string }) => name)).toEqual(['one', 'other'])
      expect(pipelines[0].agents).toEqual({ asked: 2, answered: 2 })
      expect(pipelines[0].inPerSecond).toBeGreaterThan(0)
      expect(pipelines[0]).toMatchObject({ droppedPerSecond: 0, errorsPerSecond: 0 })
      expect(pipelines[0].lagSeconds).toBeGreaterThanOrEqual(0)
      const refused = await penstock('top', '-A', '--once', ...as('onlooker'))
      expect([refused.code, refused.stderr]).toEqual([
        69,
        expect.stringContaining('may not get pipelines.penstock.dev in all namespaces'),
      ])
    })

    function onTerminal(...args: string[]): Terminal {
      const { command, args: main, env } = programOf('operator')
      return new Terminal([command, ...main, ...args], {
        env: { ...env, KUBECONFIG: cluster.kubeconfig },
        columns: 100,
        rows: 24,
      })
    }

    test.skipIf(!hasTerminals)('keys sort, filter, pause and open the rows of top, and q ends it', async () => {
      await using top = onTerminal('top', '-n', 'live', ...as('onlooker'))
      const both = /live\/one +2\/2.*\n.*live\/other +2\/2/
      await top.shows(both)
      expect(top.isTaken).toBe(true)

      top.press('r')
      await top.shows(/PIPELINE↓.*\n.*live\/other.*\n.*live\/one/)
      top.press('r', keys.right, keys.right)
      await top.shows(/IN\/S↓/)
      top.press('r')
      await top.shows(/IN\/S↑/)
      top.press('r', keys.left, keys.left)
      await top.shows(new RegExp(`PIPELINE↑.*\\n.*${both.source}`))

      top.press('/', 'oth')
      expect(await top.shows(/filter: oth_/)).not.toContain('live/one')
      top.press(keys.enter)
      expect(await top.shows(/filter: oth$/m)).toContain('live/other')
      top.press(keys.escape)
      await top.shows(both)

      // Another process refreshes the figures meanwhile.
      top.press('p')
      const paused = await top.shows(/PAUSED/)
      expect((await penstock('top', '-n', 'live', '--once', ...as('onlooker'))).code).toBe(0)
      expect(top.text).toBe(paused)
      top.press('p')
      expect(await top.shows(/q: quit/)).not.toContain('PAUSED')

      top.press(keys.down)
      await top.shows(/^> live\/one/m)
      top.press(keys.down, keys.enter)
      const opened = await top.shows(/Pipeline live\/other\n.*Programmed +True.*transform mark \(remap\)/s)
      expect(opened).not.toContain('live/one')
      top.press(keys.escape)
      await top.shows(/^> live\/other/m)
      top.press('q')
      expect(await top.ended).toBe(0)
      expect(top.isTaken).toBe(false)
    })

    test.skipIf(!hasTerminals)(
      'status --watch shows the current status of a Pipeline on a terminal until Ctrl-C',
      async () => {
        // It has a status, and no agent runs it.
        const draft = (type: string) => ({
          apiVersion: 'penstock.dev/v1alpha1',
          kind: 'Pipeline',
          metadata: { name: 'draft', namespace: 'live' },
          spec: {
            suspend: true,
            sources: [{ name: 'app', type: 'orchestrator_logs' }],
            sinks: [{ name: 'out', type }],
          },
        })
        await cluster.apply(draft('blackhol'))
        await using status = onTerminal('status', 'draft', '-n', 'live', '--watch')
        const wrong = await status.shows(/Accepted +False.*Ctrl-C exits\./s)
        expect(wrong).toContain('blackhol')
        await cluster.apply(draft('blackhole'))
        const right = await status.shows(/Accepted +True.*Ctrl-C exits\./s)
        expect(right.match(/Pipeline live\/draft/g)).toHaveLength(1)
        expect(right).not.toContain('blackhol`')
        await cluster.kubectl(['delete', 'pipeline', 'draft', '-n', 'live'])
        await status.shows(/There is no Pipeline draft in namespace live\./)
        status.press(keys.ctrlC)
        expect(await status.ended).toBe(1)
      },
    )

    test('why shows the read position of the agent in the logs of a pod', async () => {
      const result = await penstock('why', 'one', '-n', 'live', ...as('onlooker'))
      expect(result.stdout).toMatch(/^ {4}app: 0\.log: \d+ of \d+ bytes read, \d+ delivered/m)
      expect([result.code, result.stdout.split('\n').at(-2)]).toEqual([0, 'Its logs are read.'])
      const unknown = await penstock('why', 'one', '-n', 'live', ...as('nobody'))
      expect(unknown.stdout).toContain('read positions are unknown: ')
      expect(unknown.code).toBe(0)
    })

    test('render prints the configuration of the agents on a node', async () => {
      const node = await penstock('render', '--node', 'node-0000')
      expect([node.code, node.stderr]).toEqual([0, ''])
      for (const id of ['live/one/app', 'live/other/mark', '_cluster/demo/in', 'shop/web/parse'])
        expect(node.stdout).toContain(`  ${id}:\n`)
      const one = await penstock('render', '-n', 'live')
      expect(one.stdout).toContain('live/one/app')
      expect(one.stdout).not.toContain('_cluster/')
      const none = await penstock('render', '--node', 'node-0009')
      expect([none.code, none.stderr]).toEqual([1, 'No agent runs on node node-0009.\n'])
    })

    test('rollout undo reverts an Agent until its Pipelines change or it is resumed, and shows this', async () => {
      const agent = ['node', '-n', system]
      const statusOf = async (path: string) =>
        JSON.parse(await cluster.kubectl(['get', '--raw', `/apis/penstock.dev/v1alpha1/${path}`])).status
      const programmed = async (path: string) =>
        (await statusOf(path))?.conditions?.find(({ type }: { type: string }) => type === 'Programmed')
      const one = 'namespaces/live/pipelines/one'
      const node = `namespaces/${system}/agents/node`
      const mark = async (text: string) => {
        const transforms = [
          { name: 'mark', type: 'remap', config: { source: `.mark = "${text}"\ndel(.orchestrator)` } },
        ]
        const patch = JSON.stringify({ spec: { transforms } })
        await cluster.kubectl(['patch', 'pipeline', 'one', '-n', 'live', '--type=merge', '-p', patch])
      }
      const runs = async (text: string) => {
        await using tap = follow('tap', 'one', '-n', 'live', '-c', 'mark', ...as('author'))
        await eventually(() => expect(tap.lines().at(-1) ?? tap.printed.err).toContain(`"mark":"${text}"`), 120_000)
      }
      const { stableRevision: before } = await eventually(async () => {
        const status = await statusOf(node)
        expect(status.revision).toBe(status.stableRevision)
        return status
      }, 120_000)
      await mark('newer')
      await runs('newer')
      await eventually(async () => {
        const { revision, stableRevision } = await statusOf(node)
        expect(revision).toBe(stableRevision)
        expect(revision).not.toBe(before)
      }, 120_000)

      const undone = await penstock('rollout', 'undo', ...agent)
      expect([undone.code, undone.stderr]).toEqual([0, ''])
      const revision = /returns to revision ([0-9a-f]{12})\./.exec(undone.stdout)?.[1]
      expect(revision).toBe(before)
      await runs('one')
      for (const path of [node, one]) {
        await eventually(async () => {
          expect(await programmed(path)).toMatchObject({
            status: 'False',
            reason: 'Undone',
            message: expect.stringContaining(`returned to revision ${revision}`),
          })
        }, 120_000)
      }
      expect(await programmed('namespaces/live/pipelines/other')).toMatchObject({ status: 'True' })
      const again = await penstock('rollout', 'undo', ...agent)
      expect([again.code, again.stderr]).toEqual([
        1,
        expect.stringContaining(`was already returned to revision ${revision}`),
      ])
      expect((await penstock('rollout', 'undo', ...agent, '--to-revision', 'fff')).stderr).toContain(
        'has no earlier revision fff',
      )

      expect((await penstock('rollout', 'resume', ...agent)).code).toBe(0)
      await runs('newer')
      await eventually(async () => expect(await programmed(one)).toMatchObject({ status: 'True' }), 120_000)

      expect((await penstock('rollout', 'undo', ...agent, '--to-revision', revision ?? '')).code).toBe(0)
      await runs('one')
      await mark('newest')
      await runs('newest')
      await eventually(async () => expect(await programmed(node)).toMatchObject({ status: 'True' }), 120_000)
    })

    test('both work through the API server, which can reach the operator on its port', async () => {
      // The endpoint of the operator's Service: a pod with an address of this machine, with the operator's TLS.
      const certificates = resources.use(await makeCertificates())
      const { key, crt } = await certificates.issue('operator')
      const tls = { key: await certificates.read(key), cert: await certificates.read(crt) }
      const target = new URL(secondUrl)
      const front = createTlsServer(tls, (socket) => {
        const far = connect(Number(target.port), target.hostname)
        for (const one of [socket, far]) one.on('error', () => {}) // closing it ends the other
        socket.on('close', () => far.destroy()).pipe(far)
        far.on('close', () => socket.destroy()).pipe(socket)
      })
      resources.defer(() => new Promise((done) => front.close(() => done())))
      await new Promise<void>((done) => front.listen(0, '0.0.0.0', done))
      const { port } = front.address() as { port: number }
      const labels = { 'app.kubernetes.io/name': 'penstock-operator' }
      await cluster.apply(
        {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'penstock-operator', namespace: system },
          spec: { selector: labels, ports: [{ name: 'agents', port: 9443, targetPort: port }] },
        },
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'penstock-operator-0', namespace: system, labels },
          spec: { nodeName: 'node-0000', containers: [{ name: 'operator', image: 'x' }] },
        },
      )
      const podIP = outerAddress()
      const status = {
        phase: 'Running',
        podIP,
        podIPs: [{ ip: podIP }],
        conditions: [{ type: 'Ready', status: 'True' }],
      }
      await cluster.kubectl([
        ...['-n', system, 'patch', 'pod', 'penstock-operator-0', '--subresource=status', '--type=merge'],
        ...['-p', JSON.stringify({ status })],
      ])
      await eventually(async () => {
        const result = await penstock('top', 'demo', '--cluster', '--once')
        expect(result.stdout, result.stderr).toMatch(/^demo +2\/2 /m)
      }, 120_000)
      // A tenant bound to the role can reach only this port through the API server.
      const file = join(folder, 'author.kubeconfig')
      const config = JSON.parse(await cluster.kubectl(['config', 'view', '--raw', '-o', 'json']))
      config.users = [{ name: config.users[0].name, user: { token: tokens.get('author') } }]
      await writeFile(file, JSON.stringify(config))
      const closed = await penstock('tap', 'one', '-n', 'live', '--kubeconfig', file)
      expect([closed.code, closed.stderr]).toEqual([69, expect.stringContaining('--role=penstock-cli')])
      await cluster.kubectl([
        ...['create', 'rolebinding', 'cli', '-n', system, '--role=penstock-cli', '--serviceaccount=live:author'],
      ])
      await using tap = follow('tap', 'one', '-n', 'live', '--kubeconfig', file)
      await eventually(() => expect(tap.printed.out, tap.printed.err).toContain('hello of one'), 120_000)
      expect(await tap.end()).toBe(0)
    })
  })
})
