// The mounted folders of an agent: bundle files and secret values. The kubelet shows a new state by exchanging the link `..data`,
// each folder at its own time and perhaps parts of different ages; so a revision counts only when every file of it is there and is what
// the manifest says. A secret value that is late holds up the pipelines that list it, and no others.

import { type FSWatcher, readFileSync, readlinkSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../errors.ts'
import {
  type Bundle,
  type BundleManifest,
  bundleSchema,
  openShard,
  type Revision,
  readBundle,
  sha256,
  takesCandidate,
} from './format.ts'

const pollMs = 10_000
/** Both folders are usually exchanged one soon after the other. */
const quietMs = 50

export interface Loaded {
  readonly rev: string
  /** Whether it is being tried. */
  readonly candidate: boolean
  readonly secretsEpoch: string
  /** Identifies the part of the revision; undefined: all of it. */
  readonly mark?: string | undefined
  readonly bundle: Bundle
  readonly secrets: Secrets
  /**
   * Pipelines that wait for a value that the manifest lists and the folder of values does not contain yet, each with the missing value.
   */
  readonly late?: ReadonlyMap<string, string> | undefined
}

/** Secret values with their digests. */
export interface Secrets {
  value(key: string): Buffer | undefined
  digest(key: string): string | undefined
}

export type FolderState =
  | { readonly state: 'ready'; readonly loaded: Loaded }
  /** Something is missing or of another age. */
  | { readonly state: 'waiting'; readonly rev: string | undefined; readonly reason: string }

/** How the operator delivers, by the manifest that is there; undefined: there is none that can be read. */
export function deliveryIn(bundleDir: string): 'Mounted' | 'Stream' | undefined {
  const manifest = manifestIn(bundleDir)
  return manifest && (manifest.delivery === 'Stream' ? 'Stream' : 'Mounted')
}

/** The maximum time that an agent waits at its start before its first request to the API server. */
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

/** Looks what is there. Nothing is kept; reading the same twice costs the same. */
export function look(bundleDir: string, secretsDir: string, node: string, agentVersion: string): FolderState {
  const waiting = (reason: string, rev?: string): FolderState => ({ state: 'waiting', rev, reason })
  let manifest: BundleManifest
  try {
    manifest = JSON.parse(readFileSync(join(bundleDir, 'manifest.json'), 'utf8')) as BundleManifest
  } catch (error) {
    return waiting(`The manifest cannot be read: ${errorText(error)}`)
  }
  if (manifest.schema !== bundleSchema) {
    return waiting(`The manifest has schema ${manifest.schema}; this agent reads ${bundleSchema}.`)
  }
  const { candidate, stable } = manifest
  const isCandidate = candidate !== undefined && takesCandidate(candidate, node)
  const revision: Revision | undefined = isCandidate ? candidate : stable
  if (revision === undefined) return waiting('The manifest names no revision for this node yet.')
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
    return waiting(`Not everything of the revision is there: ${errorText(error)}`, rev)
  }
}

/**
 * The values that pipelines list and the folder has, each with the digest that the manifest says. Without a digest there is no such value:
 * nothing will bring it, so the pipeline does not wait for it.
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
      else if (sha256(value) !== digest) late.set(id, `The secret ${key} of ${id} is of another age than the manifest.`)
      else values.set(key, value)
    }
  }
  return { values, late }
}

/** Names in the folder are those that the operator writes: never a way to another folder. */
function valueIn(secretsDir: string, key: string): Buffer | undefined {
  if (!/^[\w-]+$/.test(key)) return undefined
  try {
    return readFileSync(join(secretsDir, key))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Whether a version comes before another. Text that is no version comes first. */
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

/** Calls back when one of the folders may have changed. Gives back what ends it. */
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
          watchers.delete(folder) // opened again by the poll, when there is something to open
        })
        watchers.set(folder, watcher)
      } catch {
        // A folder that is not there or cannot be watched: the poll below looks at it.
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

/** Differs when a folder shows another state: by the link that is exchanged, or by its manifest where there is no link. */
function stamp(folder: string): string {
  try {
    return readlinkSync(join(folder, '..data'))
  } catch {
    const found =
      statSync(join(folder, 'manifest.json'), { throwIfNoEntry: false }) ?? statSync(folder, { throwIfNoEntry: false })
    return found === undefined ? '-' : `${found.ino} ${found.size} ${found.mtimeMs}`
  }
}
