// The mounted folders of an agent: bundle files and secret values. The kubelet shows a new state by replacing the link `..data`. It
// updates the folders separately, so their contents may have different ages: a revision is valid only if all its files exist and match
// the manifest. A late secret value delays only the pipelines that list it.

import { type FSWatcher, readFileSync, readlinkSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../errors.ts'
import {
  type Bundle,
  type BundleManifest,
  bundleSchema,
  candidateFor,
  openShard,
  type Revision,
  readBundle,
  sha256,
} from './format.ts'

const pollMs = 10_000
/** Both folders are usually updated at about the same time. */
const quietMs = 50

export interface Loaded {
  readonly rev: string
  /** Whether this is a candidate revision. */
  readonly candidate: boolean
  readonly secretsEpoch: string
  /** Identifies the received part of the revision; undefined: the whole revision. */
  readonly mark?: string | undefined
  readonly bundle: Bundle
  readonly secrets: Secrets
  /** Pipelines that wait for a value listed in the manifest but missing in the value folder, each with the missing value. */
  readonly late?: ReadonlyMap<string, string> | undefined
}

/** Secret values with their digests. */
export interface Secrets {
  value(key: string): Buffer | undefined
  digest(key: string): string | undefined
}

export type FolderState =
  | { readonly state: 'ready'; readonly loaded: Loaded }
  /** A file is missing or does not match the manifest. */
  | { readonly state: 'waiting'; readonly rev: string | undefined; readonly reason: string }

/** How the operator delivers, by the current manifest; undefined if no manifest can be read. */
export function deliveryIn(bundleDir: string): 'Mounted' | 'Stream' | undefined {
  const manifest = manifestIn(bundleDir)
  return manifest && (manifest.delivery === 'Stream' ? 'Stream' : 'Mounted')
}

/** The maximum time that an agent waits at start before its first request to the API server. */
export function startSpreadIn(bundleDir: string): number {
  const ms = manifestIn(bundleDir)?.startSpreadMs
  return typeof ms === 'number' && ms > 0 ? ms : 0
}

function manifestIn(bundleDir: string): BundleManifest | undefined {
  try {
    return JSON.parse(readFileSync(join(bundleDir, 'manifest.json'), 'utf8')) as BundleManifest
  } catch {
    return undefined // reported when the bundle is read
  }
}

/** Examines the folders. It keeps no state, so reading the same content twice costs the same. */
export function look(bundleDir: string, secretsDir: string, node: string, agentVersion: string): FolderState {
  const waiting = (reason: string, rev?: string): FolderState => ({ state: 'waiting', rev, reason })
  let manifest: BundleManifest
  try {
    manifest = JSON.parse(readFileSync(join(bundleDir, 'manifest.json'), 'utf8')) as BundleManifest
  } catch (error) {
    return waiting(`Cannot read the manifest: ${errorText(error)}`)
  }
  if (manifest.schema !== bundleSchema) {
    return waiting(`The manifest has schema ${manifest.schema}; this agent reads ${bundleSchema}.`)
  }
  const candidate = candidateFor(manifest, node)
  const isCandidate = candidate !== undefined
  const revision: Revision | undefined = candidate ?? manifest.stable
  if (revision === undefined) return waiting('The manifest does not contain a revision for this node yet.')
  const { rev } = revision
  if (olderThan(agentVersion, manifest.minAgentVersion)) {
    return waiting(`The bundle needs an agent of version ${manifest.minAgentVersion}; this is ${agentVersion}.`, rev)
  }
  try {
    const bundle = readBundle(
      revision,
      revision.shards.map((shard) => readFileSync(join(bundleDir, shard.key))),
    )
    const digests = new Map(
      Object.entries(
        manifest.secrets === undefined
          ? {}
          : (JSON.parse(
              openShard(manifest.secrets, readFileSync(join(bundleDir, manifest.secrets.key))).toString('utf8'),
            ) as Record<string, string>),
      ),
    )
    const { values, late } = valuesIn(secretsDir, bundle, digests)
    const secrets: Secrets = { value: (key) => values.get(key), digest: (key) => digests.get(key) }
    return {
      state: 'ready',
      loaded: { rev, candidate: isCandidate, secretsEpoch: manifest.secretsEpoch, bundle, secrets, late },
    }
  } catch (error) {
    return waiting(`The revision is incomplete: ${errorText(error)}`, rev)
  }
}

/**
 * The available values that pipelines list, each with its digest from the manifest. A value without a digest does not exist and will not
 * arrive, so the pipeline does not wait for it.
 */
export function valuesIn(
  secretsDir: string,
  { pipelines }: Bundle,
  digests: ReadonlyMap<string, string>,
): { readonly values: ReadonlyMap<string, Buffer>; readonly late: ReadonlyMap<string, string> } {
  const values = new Map<string, Buffer>()
  const late = new Map<string, string>()
  for (const [id, pipeline] of Object.entries(pipelines)) {
    for (const { key } of pipeline.secrets ?? []) {
      const digest = digests.get(key)
      if (digest === undefined || values.has(key)) continue
      const value = valueIn(secretsDir, key)
      if (value === undefined) late.set(id, `The secret ${key} of ${id} is not in the mounted folder yet.`)
      else if (sha256(value) !== digest)
        late.set(id, `The secret ${key} of ${id} does not match its digest in the manifest.`)
      else values.set(key, value)
    }
  }
  return { values, late }
}

/** File names in the folder follow the operator's format, so a key can never name a file in another folder. */
function valueIn(secretsDir: string, key: string): Buffer | undefined {
  if (!/^[\w-]+$/.test(key)) return undefined
  try {
    return readFileSync(join(secretsDir, key))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Whether a version precedes another. Text that is not a version comes first. */
export function olderThan(version: string, than: string): boolean {
  const parts = (text: string) => (/^\d+(\.\d+)*/.exec(text)?.[0] ?? '').split('.').map(Number)
  const own = parts(version)
  const other = parts(than)
  for (let index = 0; index < Math.max(own.length, other.length); index++) {
    const difference = (own[index] ?? 0) - (other[index] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}

/** Calls back when one of the folders may have changed. Returns a function that stops watching. */
export function watchFolders(folders: readonly string[], changed: () => void): () => void {
  const watchers = new Map<string, FSWatcher>()
  let timer: NodeJS.Timeout | undefined
  let seen = folders.map(stamp).join('\n')
  const notice = () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      const now = folders.map(stamp).join('\n')
      if (now === seen) return
      seen = now
      changed()
    }, quietMs)
  }
  const open = () => {
    for (const folder of folders) {
      if (watchers.has(folder)) continue
      try {
        const watcher = watch(folder, { persistent: false }, notice)
        watcher.on('error', () => {
          watcher.close()
          watchers.delete(folder) // the poll opens it again when it exists
        })
        watchers.set(folder, watcher)
      } catch {
        // The poll below checks folders that do not exist or cannot be watched.
      }
    }
  }
  open()
  const poll = setInterval(() => {
    open()
    notice()
  }, pollMs)
  return () => {
    clearInterval(poll)
    clearTimeout(timer)
    for (const watcher of watchers.values()) watcher.close()
  }
}

/** A text that changes with a folder's state: the target of its link, or its manifest if there is no link. */
function stamp(folder: string): string {
  try {
    return readlinkSync(join(folder, '..data'))
  } catch {
    const found =
      statSync(join(folder, 'manifest.json'), { throwIfNoEntry: false }) ?? statSync(folder, { throwIfNoEntry: false })
    return found === undefined ? '-' : `${found.ino} ${found.size} ${found.mtimeMs}`
  }
}
