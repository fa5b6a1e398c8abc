// Runs the commands of the documents that need a cluster, exactly as printed, on a node of a real one. The programs are real except `kind` and
// `docker`, because the cluster already exists, and images are built from the project's Dockerfiles with the names in the chart.

import { join } from 'node:path'
import { version } from '@penstock/agent/program'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster } from '../cluster/cluster.ts'
import { command, root } from '../command.ts'
import { isOf, Reader, type ShellBlock, shellBlocks } from '../documents.ts'
import { chart, helm, missingForHelm } from '../helm.ts'
import { startInstallable, userOf } from '../installed.ts'
import { type Registry, startRegistry } from '../registry.ts'
import { type ClusterStep, type Hand, onCluster } from './on-cluster.ts'

const missing = missingForCluster(1) ?? missingForHelm()
const blocks = await shellBlocks()

/** The registry for image names without one. */
const published = (name: string) => `docker.io/${name}`
const shop = 'nginx:1'
/** The shop's server logs one request per second. */
const serving = `while :; do echo '10.244.1.1 - - "GET / HTTP/1.1" 200 615'; sleep 1; done`

const cells = (line: string) => line.trim().split(/\s+/)
const lastCommand = (text: string) => text.trimEnd().split('\n').at(-1) ?? ''

/** Whether a table has the rows in the page, apart from ages. */
function isTable(printed: string, shown: string): boolean {
  const [wanted, found] = [shown, printed].map((table) => table.trimEnd().split('\n').map(cells))
  const age = wanted?.[0]?.indexOf('AGE') ?? -1
  const same = (row: readonly string[] | undefined, at: number) =>
    JSON.stringify(row?.toSpliced(age, 1)) === JSON.stringify(found?.[at]?.toSpliced(age, 1))
  return wanted?.length === found?.length && wanted?.every(same) === true
}

describe.skipIf(missing !== undefined)(`on a cluster${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let reader: Reader
  let registry: Registry

  const { kubectl, waitFor, isReady } = userOf(() => cluster)
  const applyText = async (text: string) => {
    await cluster.kubectl(['apply', '-f', '-'], { input: text })
  }

  beforeAll(async () => {
    const installable = await startInstallable(resources, { nodes: 1 })
    cluster = installable.cluster
    const [operator = '', agent = ''] = installable.archives
    const archives = { [`penstock/operator:${version}`]: operator, [`penstock/agent:${version}`]: agent }
    for (const [name, archive] of Object.entries(archives)) await cluster.load(archive, published(name))
    reader = resources.use(await Reader.arrive())
    const [rootfs, archive] = [join(reader.folder, '.shop'), join(reader.folder, '.shop.tar')]
    const scripts = join(root, 'e2e/cluster')
    await command(join(scripts, 'rootfs.sh'), [rootfs, '/usr/bin/busybox', '/usr/bin/busybox=/bin/sh'])
    await command(join(scripts, 'image.sh'), [published(`library/${shop}`), rootfs, archive, '/bin/sh', '-c', serving])
    await cluster.load(archive)

    Object.assign(reader.env, { KUBECONFIG: cluster.kubeconfig, GOGC: 'off', GOMEMLIMIT: '512MiB' })
    registry = resources.use(await startRegistry())
    Object.assign(reader.env, { SSL_CERT_FILE: registry.authority })
    await helm(['package', chart(), '--destination', join(reader.folder, '.charts')])
    const packed = join(reader.folder, '.charts', `penstock-${version}.tgz`)
    await helm(['push', packed, `oci://${registry.address}/charts`], { env: reader.env })

    await reader.link('kubectl', cluster.kubectlPath)
    await reader.program('docker', `[[ $1 == build && $2 == -f && -f $3 && $4 == -t && $6 == . ]] || exit 64`)
    const load = Object.entries(archives).map(
      ([name, path]) =>
        `${name}) CLUSTER_DIR=${cluster.folder} ${join(scripts, 'load.sh')} ${published(name)}=${path} ;;`,
    )
    await reader.program(
      'kind',
      `case "$1 $2 $3" in
        "create cluster --config") [[ -f $4 ]] ;;
        "load docker-image --name") case $5 in ${load.join(' ')} *) exit 64 ;; esac ;;
        *) exit 64 ;;
      esac`,
    )
  })
  afterAll(() => resources.disposeAsync())

  async function follow(step: ClusterStep, block: ShellBlock): Promise<void> {
    const hand: Hand = {
      reader,
      registry,
      kubectl,
      apply: (...objects) => cluster.apply(...objects),
      applyText,
      waitFor,
      isReady,
    }
    for (const [path, text] of Object.entries(step.files ?? {})) await reader.write(path, text)
    await step.before?.(hand)
    const words = Object.entries((await step.words?.(hand)) ?? {})
    const text = words.reduce((all, [word, value]) => all.replaceAll(word, value), block.text)
    const { code, printed } = await reader.paste(text, step.cwd)
    expect(code, `${text}\n${printed}`).toBe(0)
    expect(printed).not.toMatch(/\n {4}at /)
    for (const part of step.prints ?? []) expect(printed).toMatch(part)
    const { table } = block
    if (table !== undefined)
      await waitFor(`the table that ${step.page} shows:\n${table}`, 120_000, async () => {
        const now = await reader.paste(lastCommand(text))
        if (!isTable(now.printed, table)) throw new Error(now.printed)
        return true
      })
    await step.after?.(hand)
  }

  for (const step of onCluster) {
    const block = blocks.find((one) => isOf(one, step))
    test(`${step.page}: ${step.block}`, async () => {
      if (block === undefined) throw new Error('the page has no such block')
      await follow(step, block)
    })
  }
})
