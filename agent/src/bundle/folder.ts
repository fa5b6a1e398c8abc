// The mounted folders of an agent: bundle files and secret values. The kubelet shows a new state by exchanging the link `..data`,
// each folder at its own time and perhaps parts of different ages; so a revision counts only when every file of it and every
// secret is there and is what the manifest says.

import { type FSWatcher, readFileSync, readlinkSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../errors.ts'
import {
  type Bundle,
  bundleSchema,
  type Manifest,
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
  /** Tells which part of the revision it is; undefined: all of it. */
  readonly mark?: string | undefined
  readonly bundle: Bundle
  readonly secrets: Secrets
}

/** Secret values with their digests. */
export interface Secrets {
  value(key: string): Buffer | undefined
  digest(key: string): string | undefined
}

export type Look =
  | { readonly state: 'ready'; readonly loaded: Loaded }
  /** Something is missing or of another age. */
  | { readonly state: 'waiting'; readonly rev: string | undefined; readonly reason: string }

/** How the operator delivers, by the manifest that is there; undefined: there is none that can be read. */
export function deliveryIn(bundleDir: string): 'Mounted' | 'Stream' | undefined {
  const manifest = manifestIn(bundleDir)
  return manifest && (manifest.delivery === 'Stream' ? 'Stream' : 'Mounted')
}

/** The most that an agent shall wait at its start before it asks the API server. */
export function startSpreadIn(bundleDir: string): number {
  const ms = manifestIn(bundleDir)?.startSpreadMs
  return typeof ms === 'number' && ms > 0 ? ms : 0
}

function manifestIn(bundleDir: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(bundleDir, 'manifest.json'), 'utf8')) as Manifest
  } catch {
    return undefined // told of when the bundle is looked at
  }
}

/** Looks what is there. Nothing is kept; reading the same twice costs the same. */
export function look(bundleDir: string, secretsDir: string, node: string, agentVersion: string): Look {
  const waiting = (reason: string, rev?: string): Look => ({ state: 'waiting', rev, reason })
  let manifest: Manifest
  try {
    manifest = JSON.parse(readFileSync(join(bundleDir, 'manifest.json'), 'utf8')) as Manifest
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
    const digests =
      manifest.secrets === undefined
        ? {}
        : (JSON.parse(
            openShard(manifest.secrets, readFileSync(join(bundleDir, manifest.secrets.key))).toString('utf8'),
          ) as Record<string, string>)
    const values = new Map<string, Buffer>()
    for (const key of secretKeys(bundle)) {
      const digest = digests[key]
      if (digest === undefined) return waiting(`The manifest does not know the secret ${key}.`, rev)
      const value = readFileSync(join(secretsDir, key))
      if (sha256(value) !== digest) return waiting(`The secret ${key} is of another age than the manifest.`, rev)
      values.set(key, value)
    }
    const secrets: Secrets = { value: (key) => values.get(key), digest: (key) => digests[key] }
    return {
      state: 'ready',
      loaded: { rev, candidate: isCandidate, secretsEpoch: manifest.secretsEpoch, bundle, secrets },
    }
  } catch (error) {
    return waiting(`Not everything of the revision is there: ${errorText(error)}`, rev)
  }
}

/** Keys of all secrets that a bundle, or a part of one, refers to. */
export function secretKeys(value: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const member of value) secretKeys(member, found)
  else if (typeof value === 'object' && value !== null) {
    const key = (value as { $secret?: unknown }).$secret
    if (typeof key === 'string') found.add(key)
    else for (const member of Object.values(value)) secretKeys(member, found)
  }
  return found
}

/** Whether a version comes before another; what is not a version comes first. */
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
