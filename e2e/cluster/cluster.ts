// A real local Kubernetes from the scripts of this folder: a control plane on loopback, or with nodes (kubelet, containerd)
// where the machine allows it. Programs and images are kept in the user's cache, state in a temporary folder.
//
//   npm run cluster -- up [--nodes N]   prints the path of a kubeconfig file
//   npm run cluster -- down             ends it and removes its state
//
// With KUBECONFIG set to another cluster: `up` prints it and starts nothing, `down` leaves it alone. The file that `up`
// printed is not another cluster.
// KUBEBUILDER_ASSETS names a folder with etcd, kube-apiserver and kubectl to use instead of building them.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { freePort } from '@penstock/agent/testing/free-port'
import { misuse, runScript } from '@penstock/agent/tools/script'
import { cacheFolder } from '../cache.ts'
import type { CommandOptions } from '../command.ts'
import { command, node } from '../command.ts'
import { ensureGo } from '../go.ts'

/** The address of this machine as pods see it, when there are nodes. */
export const hostAddress = '10.77.0.1'

/** Commands of the scripts, and the Debian package of each. */
export const clusterPackages: Readonly<Record<string, string>> = {
  openssl: 'openssl',
  curl: 'curl',
  pgrep: 'procps',
}
export const nodePackages: Readonly<Record<string, string>> = {
  ...clusterPackages,
  containerd: 'containerd',
  runc: 'runc',
  '/usr/lib/cni/bridge': 'containernetworking-plugins',
  ip: 'iproute2',
  iptables: 'iptables',
  nft: 'nftables',
  conntrack: 'conntrack',
  '/usr/bin/busybox': 'busybox-static',
  gcc: 'gcc',
  '/usr/include/stdlib.h': 'libc6-dev',
  buildah: 'buildah',
  flock: 'util-linux',
}

/** Whether a command, or a file, is there. */
export function present(name: string): boolean {
  if (name.startsWith('/')) return existsSync(name)
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  return folders.some((folder) => folder !== '' && existsSync(join(folder, name)))
}

const script = (name: string) => resolve(import.meta.dirname, name)
const binFolder = () =>
  process.env['CLUSTER_BIN'] ?? process.env['KUBEBUILDER_ASSETS'] ?? join(cacheFolder, 'cluster-bin')
const scriptEnvironment = () => ({
  CLUSTER_BIN: binFolder(),
  NODE: node,
  PATH: `${process.env['PATH']}:/usr/sbin:/sbin`,
})

/** Why there can be no cluster here, or undefined. */
export function missingForCluster(nodes: number): string | undefined {
  if (process.platform !== 'linux') return `a local cluster needs Linux, and this is ${process.platform}`
  const absent = Object.entries(nodes > 0 ? nodePackages : clusterPackages).filter(([name]) => !present(name))
  if (nodes > 0 && process.getuid?.() !== 0) return 'nodes need root'
  if (absent.length > 0) return `missing packages: ${absent.map(([, name]) => name).join(' ')}`
  if (nodes > 0 && !existsSync('/sys/fs/cgroup/memory')) return 'nodes need the control groups of version 1'
  const external = process.env['CLUSTER_BIN'] ?? process.env['KUBEBUILDER_ASSETS']
  const needed = nodes > 0 ? 'kubelet' : 'kube-apiserver'
  if (existsSync(join(binFolder(), needed))) return undefined
  if (external !== undefined) return `${external} has no ${needed}`
  if (process.env['PENSTOCK_TEST_INSTALL'] === '0')
    return "the cluster's programs are not built, and PENSTOCK_TEST_INSTALL=0 forbids it"
  return present('go') ? undefined : "Go is missing, which builds the cluster's programs"
}

/** Builds the programs and images of the cluster, once, into the cache. */
export async function prepareCluster(nodes: number, options: CommandOptions = {}): Promise<void> {
  await mkdir(cacheFolder, { recursive: true })
  const lock = join(cacheFolder, '.cluster.lock')
  const run = (name: string) =>
    command('flock', [lock, script(name)], { timeoutMs: 3_600_000, ...options, env: scriptEnvironment() })
  if (process.env['CLUSTER_BIN'] === undefined && process.env['KUBEBUILDER_ASSETS'] === undefined) {
    await ensureGo()
    await run('build.sh')
  }
  if (nodes > 0) await run('images.sh')
}

export interface Cluster extends AsyncDisposable {
  readonly kubeconfig: string
  /** The program itself, for what runs longer than a command. */
  readonly kubectlPath: string
  /** State and logs; a node's files are below `node-1` and so on. */
  readonly folder: string
  kubectl(args: readonly string[], options?: CommandOptions): Promise<string>
  /** Creates or changes objects. */
  apply(...objects: readonly object[]): Promise<void>
  /** Loads an image archive into the nodes. With a name, such as `docker.io/library/nginx:1`, pods find it by that, too. */
  load(archive: string, name?: string): Promise<void>
  /** Ends a node with all that runs on it, as a power cut does: `node-2`. */
  stopNode(name: string): Promise<void>
  /** Starts it again, with what was on its disk. */
  startNode(name: string): Promise<void>
}

export interface ClusterOptions {
  readonly nodes?: number
  /** `containerLogMaxSize` of the kubelets. */
  readonly logMaxSize?: string
  readonly logMaxFiles?: number
}

/** Starts its own cluster for a test; it ends with its holder. One with nodes waits until it is the only one. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const nodes = options.nodes ?? 0
  await prepareCluster(nodes)
  // The runner of the tests ends whatever is left below its own folder.
  const folder = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'cluster-'))
  const env = {
    ...scriptEnvironment(),
    CLUSTER_DIR: folder,
    CLUSTER_NODES: String(nodes),
    CLUSTER_PORT: String(nodes > 0 ? 6443 : await freePort()),
    CLUSTER_LOG_MAX_SIZE: options.logMaxSize ?? '10Mi',
    CLUSTER_LOG_MAX_FILES: String(options.logMaxFiles ?? 5),
  }
  const end = async () => {
    await command(script('down.sh'), ['--purge'], { env })
    await rm(folder, { recursive: true, force: true })
  }
  // A test runner that exits in the middle must not leave a cluster behind.
  const last = () => spawnSync(script('down.sh'), ['--purge'], { env: { ...process.env, ...env } })
  process.once('exit', last)
  try {
    const kubeconfig = (await command(script('up.sh'), [], { env, timeoutMs: 2_400_000 })).trim()
    // It ends before its garbage matters: collecting it would be a third of its processor time.
    const kubectlEnv = { KUBECONFIG: kubeconfig, GOGC: 'off', GOMEMLIMIT: '512MiB' }
    const kubectl = (args: readonly string[], more: CommandOptions = {}) =>
      command(join(binFolder(), 'kubectl'), args, { timeoutMs: 120_000, ...more, env: kubectlEnv })
    return {
      kubeconfig,
      kubectlPath: join(binFolder(), 'kubectl'),
      folder,
      kubectl,
      async apply(...objects) {
        await kubectl(['apply', '-f', '-'], { input: objects.map((one) => JSON.stringify(one)).join('\n---\n') })
      },
      async load(archive, name) {
        await command(script('load.sh'), [name === undefined ? archive : `${name}=${archive}`], { env })
      },
      async stopNode(name) {
        await command(script('node.sh'), [numberOf(name), 'down'], { env })
      },
      async startNode(name) {
        await command(script('node.sh'), [numberOf(name)], { env })
      },
      async [Symbol.asyncDispose]() {
        process.off('exit', last)
        await end()
      },
    }
  } catch (error) {
    process.off('exit', last)
    await end().catch(() => {}) // the reason why it did not start is what counts
    throw error
  }
}

const numberOf = (node: string) => node.slice('node-'.length)

/** Ends every cluster that was started below a run folder and is still up. */
export async function stopClusters(run: string): Promise<void> {
  for (const name of await readdir(run)) {
    if (!name.startsWith('cluster-')) continue
    await command(script('down.sh'), ['--purge'], { env: { ...scriptEnvironment(), CLUSTER_DIR: join(run, name) } })
  }
}

/** The state of the cluster that `up` starts, as lib.sh places it. */
const stateFolder = () =>
  resolve(process.env['CLUSTER_DIR'] ?? join(tmpdir(), `penstock-cluster.${process.getuid?.() ?? ''}`))

/** KUBECONFIG, unless it names the file that `up` itself wrote. */
function externalCluster(): string | undefined {
  const named = process.env['KUBECONFIG']
  return named === undefined || resolve(named) === join(stateFolder(), 'pki/admin.kubeconfig') ? undefined : named
}

async function main(action: string, nodes: number): Promise<number> {
  const external = externalCluster()
  if (action === 'down') {
    if (external !== undefined) console.error(`KUBECONFIG is set: ${external} is left alone.`)
    else await command(script('down.sh'), ['--purge'], { env: scriptEnvironment(), show: true })
    return 0
  }
  if (external !== undefined) {
    console.log(external)
    return 0
  }
  const missing = missingForCluster(nodes)
  if (missing !== undefined) {
    console.error(`No cluster can be started here: ${missing}.`)
    return 1
  }
  await prepareCluster(nodes, { show: true })
  await command(script('up.sh'), [], {
    env: { ...scriptEnvironment(), CLUSTER_NODES: String(nodes) },
    show: true,
    timeoutMs: 2_400_000,
  })
  return 0
}

if (import.meta.main) {
  await runScript({
    call: 'npm run cluster -- up|down',
    about:
      'A Kubernetes of this machine: `up` prints the path of a kubeconfig file, `down` ends it and removes its state.',
    flags: {
      nodes: {
        type: 'string',
        oneOf: ['0', '1', '2', '3'],
        value: 'N',
        help: 'Of `up`: how many nodes, 1 to 3; 0, a control plane alone, if not given.',
      },
    },
    words: true,
    run({ flags: { nodes }, words: [action = '', ...more] }) {
      if (!['up', 'down'].includes(action) || more.length > 0) throw misuse('Say what to do: `up` or `down`.')
      if (action === 'down' && nodes !== undefined) throw misuse('--nodes belongs to `up`.')
      return main(action, Number(nodes ?? 0))
    },
  })
}
