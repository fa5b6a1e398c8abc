// A real local Kubernetes cluster from the scripts of this folder: a control plane on loopback, with nodes (kubelet, containerd) if the
// machine allows them. Programs and images are kept in the user's cache, and state in a temporary folder.
//
//   npm run cluster -- up [--nodes N]   prints the path of a kubeconfig file
//   npm run cluster -- down             stops it and removes its state
//
// If KUBECONFIG points to another cluster, `up` only prints it and `down` does nothing. The file that `up` printed does not count as
// another cluster.
// KUBEBUILDER_ASSETS can name a folder with etcd, kube-apiserver and kubectl, which are then not built.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { freePort } from '@penstock/agent/testing/free-port'
import { misuse, runScript } from '@penstock/agent/tools/script'
import { cacheFolder } from '../cache.ts'
import type { CommandOptions } from '../command.ts'
import { command, node, patience } from '../command.ts'
import { ensureGo } from '../go.ts'

/** The address of this machine for pods, if there are nodes. */
export const hostAddress = '10.77.0.1'

/** Commands that the scripts need, with their Debian packages. */
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

/** Whether a command or a file exists. */
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

/** The reason why this machine cannot run a cluster; undefined if it can. */
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
  /** The path of the program, for long-running commands. */
  readonly kubectlPath: string
  /** Folder for state and logs. Files of nodes are in `node-1` and so on. */
  readonly folder: string
  kubectl(args: readonly string[], options?: CommandOptions): Promise<string>
  /** Creates or updates objects. */
  apply(...objects: readonly object[]): Promise<void>
  /** Loads an image archive into the nodes. With a name, such as `docker.io/library/nginx:1`, pods can also refer to it by this name. */
  load(archive: string, name?: string): Promise<void>
  /** Stops a node (such as `node-2`) and everything on it, as a power failure does. */
  stopNode(name: string): Promise<void>
  /** Starts it again with its disk. */
  startNode(name: string): Promise<void>
}

export interface ClusterOptions {
  readonly nodes?: number
  /** `containerLogMaxSize` of the kubelets. */
  readonly logMaxSize?: string
  readonly logMaxFiles?: number
}

/** Starts a cluster for a test, which stops when the returned object is disposed. A cluster with nodes waits until it is the only one. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const nodes = options.nodes ?? 0
  await prepareCluster(nodes)
  // The test runner stops everything that is left in its own folder.
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
  // A test runner that exits early must not leave a cluster behind.
  const last = () => spawnSync(script('down.sh'), ['--purge'], { env: { ...process.env, ...env } })
  process.once('exit', last)
  try {
    const kubeconfig = (await command(script('up.sh'), [], { env, timeoutMs: 2_400_000 })).trim()
    // It ends before its garbage matters, and collection would take a third of its CPU time.
    const kubectlEnv = { KUBECONFIG: kubeconfig, GOGC: 'off', GOMEMLIMIT: '512MiB' }
    const kubectl = (args: readonly string[], more: CommandOptions = {}) =>
      command(join(binFolder(), 'kubectl'), args, { timeoutMs: patience * 180_000, ...more, env: kubectlEnv })
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
    await end().catch(() => {}) // report why it did not start instead
    throw error
  }
}

const numberOf = (node: string) => node.slice('node-'.length)

/** Stops all clusters that were started in a run folder and still run. */
export async function stopClusters(run: string): Promise<void> {
  for (const name of await readdir(run)) {
    if (!name.startsWith('cluster-')) continue
    await command(script('down.sh'), ['--purge'], { env: { ...scriptEnvironment(), CLUSTER_DIR: join(run, name) } })
  }
}

/** The state folder of the cluster that `up` starts, as defined in lib.sh. */
const stateFolder = () =>
  resolve(process.env['CLUSTER_DIR'] ?? join(tmpdir(), `penstock-cluster.${process.getuid?.() ?? ''}`))

/** KUBECONFIG, unless it is the file that `up` itself wrote. */
function externalCluster(): string | undefined {
  const named = process.env['KUBECONFIG']
  return named === undefined || resolve(named) === join(stateFolder(), 'pki/admin.kubeconfig') ? undefined : named
}

async function main(action: string, nodes: number): Promise<number> {
  const external = externalCluster()
  if (action === 'down') {
    if (external !== undefined) console.error(`KUBECONFIG is set to ${external}, which is not changed.`)
    else await command(script('down.sh'), ['--purge'], { env: scriptEnvironment(), show: true })
    return 0
  }
  if (external !== undefined) {
    console.log(external)
    return 0
  }
  const missing = missingForCluster(nodes)
  if (missing !== undefined) {
    console.error(`This machine cannot run a cluster: ${missing}.`)
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
      'A local Kubernetes cluster: `up` prints the path of a kubeconfig file, `down` stops the cluster and removes its state.',
    flags: {
      nodes: {
        type: 'string',
        oneOf: ['0', '1', '2', '3'],
        value: 'N',
        help: 'For `up`: number of nodes, 1 to 3; by default 0, which starts only a control plane.',
      },
    },
    words: true,
    run({ flags: { nodes }, words: [action = '', ...more] }) {
      if (!['up', 'down'].includes(action) || more.length > 0) throw misuse('Pass an action: `up` or `down`.')
      if (action === 'down' && nodes !== undefined) throw misuse('--nodes belongs to `up`.')
      return main(action, Number(nodes ?? 0))
    },
  })
}
