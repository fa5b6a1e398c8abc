// `penstock migrate`: rewrites objects of the cluster in the storage version of their kind, so that a later release can stop serving
// the other versions. With files, it updates their `apiVersion` to the newest. A stored object keeps the version of its last write. A
// write without a change is enough, because the API server stores the object again if the bytes differ.

import { createHash } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { errorText, exitCodes, fileReason, PenstockError } from '@penstock/agent/errors'
import { counted, type Flags, pause } from '@penstock/agent/program'
import { kinds, type ResourceKind } from '../api/kinds.ts'
import { type KubeObject, keyOf, type ResourceType } from '../api/object.ts'
import { resourceFiles, standardInput } from '../compile/resources.ts'
import { isReason, type KubeClient, KubeError, pathOf } from '../kube/client.ts'
import { customResourceDefinitionType } from '../kube/resource-types.ts'
import { helpOf, parseFlags, resourceOptions, resourcePaths } from './arguments.ts'
import { connect, connectionOptions } from './cluster.ts'
import { migrateText } from './migrate-text.ts'
import { printProblems } from './problems.ts'

export const options = {
  'dry-run': { type: 'boolean', help: 'Make no changes. Exit code 1 if something would change.' },
  ...resourceOptions,
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock migrate [FLAGS]
       penstock migrate -f PATH… [FLAGS]

Rewrites objects of the cluster that may be stored in an earlier version of their kind, and then removes that version from status.storedVersions of the CRD. It needs the rights of a cluster administrator. Run it before an upgrade whose notes ask for it.

With -f it changes files instead: it replaces the \`apiVersion\` of Penstock's resources by the newest one, which the previous release may not serve, and leaves everything else as it is.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const isDry = values['dry-run']
  if (values.file.length > 0 || words.length > 0) {
    return migrateFiles(resourcePaths(values.file, words), values.recursive, isDry)
  }
  if (values.recursive)
    throw new PenstockError('PEN_USAGE', '`-R` only works with files: name a folder with `-f PATH`.')
  const { client } = await connect(values)
  let code: number = exitCodes.ok
  for (const kind of kinds) {
    const outcome = await migrateKind(client, kind, isDry)
    if (outcome !== exitCodes.ok && code !== exitCodes.unavailable) code = outcome
  }
  return code
}

type Definition = KubeObject & {
  readonly spec: { readonly versions: readonly { readonly name: string; readonly storage: boolean }[] }
  readonly status?: { readonly storedVersions?: readonly string[] }
}

/** Exit code for one kind: 1 for a dry run with pending changes. */
async function migrateKind(client: KubeClient, kind: ResourceKind, isDry: boolean): Promise<number> {
  const name = `${kind.plural}.${kind.group}`
  const definition = await client.get<Definition>(customResourceDefinitionType, undefined, name)
  if (definition === undefined) {
    console.error(`${name} is not installed: apply \`crds\` of this release first.`)
    return exitCodes.unavailable
  }
  const storage = definition.spec.versions.find((version) => version.storage)?.name
  const stored = definition.status?.storedVersions ?? []
  const earlier = stored.filter((version) => version !== storage)
  if (storage === undefined || earlier.length === 0) {
    console.log(`${name}: all objects are stored as ${storage}.`)
    return exitCodes.ok
  }
  const type = { ...kind, version: storage }
  const objects = await client.list(type, { metadataOnly: true })
  const what = counted(objects.length, 'object')
  if (isDry) {
    console.log(
      `${name}: ${what} would be rewritten as ${storage}, and ${earlier.join(', ')} removed from storedVersions.`,
    )
    return 1
  }
  await inForce(client, type)
  let failed = 0
  for (const object of objects) if (!(await rewrite(client, type, object))) failed++
  if (failed > 0) {
    console.error(
      `${name}: ${failed} of ${what} could not be rewritten, so storedVersions keeps ${earlier.join(', ')}.`,
    )
    return exitCodes.unavailable
  }
  await prune(client, definition, storage)
  console.log(`${name}: ${what} rewritten as ${storage}; ${earlier.join(', ')} removed from storedVersions.`)
  return exitCodes.ok
}

const inForceMs = 60_000

/**
 * Waits until the API server uses the storage version of the CRD: after a change of the CRD this takes a moment, in which a rewrite
 * would keep the earlier version. The discovery document contains a hash of the version in use.
 */
async function inForce(client: KubeClient, { group, version, kind, plural }: ResourceType): Promise<void> {
  const expected = createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
  const limit = AbortSignal.timeout(inForceMs)
  for (;;) {
    const { resources } = await client.request<Discovery>('GET', `/apis/${group}/${version}`)
    const found = resources.find(({ name }) => name === plural)?.storageVersionHash
    if (found === expected) return
    if (limit.aborted) {
      throw new PenstockError(
        'PEN_KUBERNETES',
        `The API server still does not store ${plural} as ${version} ${inForceMs / 1000} s after the change of the CRD. Nothing was changed; run the command again.`,
      )
    }
    await pause(500, limit)
  }
}

interface Discovery {
  readonly resources: readonly { readonly name: string; readonly storageVersionHash?: string }[]
}

/** Writes an object without a change. False if the API server rejects it, which is reported; a deleted object needs no write. */
async function rewrite(client: KubeClient, type: ResourceType, object: KubeObject): Promise<boolean> {
  const { namespace, name } = object.metadata
  try {
    await client.patch(type, namespace, name, {})
    return true
  } catch (error) {
    if (isReason(error, 'NotFound')) return true
    if (!(error instanceof KubeError) || error.status === 0) throw error
    console.error(`${type.kind} ${keyOf(object)}: ${errorText(error)}`)
    return false
  }
}

/**
 * Applies only to the definition that was read. If it has changed meanwhile, for example its storage version, the API server rejects
 * this, and another run starts from the new definition.
 */
async function prune(client: KubeClient, { metadata }: Definition, storage: string): Promise<void> {
  const body = {
    metadata: { resourceVersion: metadata.resourceVersion },
    status: { storedVersions: [storage] },
  }
  await client.request('PATCH', `${pathOf(customResourceDefinitionType, undefined, metadata.name)}/status`, body, {
    contentType: 'application/merge-patch+json',
  })
}

/** @throws PenstockError that names the path if it cannot be read */
function reading<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new PenstockError('PEN_CONFIG_UNREADABLE', `"${path}" cannot be read: ${fileReason(error)}.`, {
      cause: error,
    })
  }
}

function migrateFiles(paths: readonly string[], isRecursive: boolean, isDry: boolean): number {
  const files = paths.flatMap((path) => {
    if (path === standardInput) return [path]
    return reading(path, () => resourceFiles(path, isRecursive).filter((file) => !statSync(file).isDirectory()))
  })
  if (files.length === 0) throw new PenstockError('PEN_USAGE', `There is no .yaml or .yml file in ${paths.join(', ')}.`)
  // One unreadable file stops everything, because the files of a change belong together.
  const changes = files.map((file) => {
    return {
      file,
      ...migrateText(
        file,
        reading(file, () => readFileSync(file === standardInput ? 0 : file, 'utf8')),
      ),
    }
  })
  if (!printProblems(changes.flatMap(({ problems }) => problems))) return exitCodes.config
  let changed = 0
  for (const { file, text, count } of changes) {
    if (file === standardInput && !isDry) process.stdout.write(text)
    if (count === 0) continue
    changed++
    if (file !== standardInput && !isDry) writeFileSync(file, text)
    console.error(`${file}: ${counted(count, 'resource')} ${isDry ? 'would change' : 'changed'}`)
  }
  if (changed === 0) console.error('No resource has an earlier version.')
  return isDry && changed > 0 ? 1 : exitCodes.ok
}
