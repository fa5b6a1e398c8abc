// Bundle folders as the kubelet mounts them: it writes a new state to a separate folder, and activates it by exchanging the link `..data`.

import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Bundle, type BundleManifest, type Candidate, type Revision, sha256 } from '../bundle/format.ts'

let states = 0

/** Replaces the visible files of a folder in one step. */
export function project(folder: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  const state = `..state-${++states}`
  mkdirSync(join(folder, state), { recursive: true })
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, state, name), content)
    try {
      symlinkSync(join('..data', name), join(folder, name))
    } catch {
      // It exists from an earlier state.
    }
  }
  symlinkSync(state, join(folder, '..data.new'))
  renameSync(join(folder, '..data.new'), join(folder, '..data'))
}

export interface TestBundle {
  readonly pipelines: Bundle['pipelines']
  readonly subscriptions?: Bundle['hub']['subscriptions']
  readonly sources?: Record<string, Record<string, unknown>>
  readonly transforms?: Record<string, Record<string, unknown>>
  readonly sinks: Record<string, Record<string, unknown>>
}

/** One bundle with the pipelines of several. */
export function merged(...bundles: readonly TestBundle[]): TestBundle {
  return {
    pipelines: Object.assign({}, ...bundles.map((bundle) => bundle.pipelines)),
    subscriptions: bundles.flatMap((bundle) => bundle.subscriptions ?? []),
    transforms: Object.assign({}, ...bundles.map((bundle) => bundle.transforms)),
    sinks: Object.assign({}, ...bundles.map((bundle) => bundle.sinks)),
  }
}

/** The files of a revision, as shards of at most this many bytes before compression. */
function revisionOf(bundle: TestBundle, shardBytes = 1 << 20): { revision: Revision; files: Record<string, Buffer> } {
  const { pipelines, subscriptions = [], sources = {}, transforms = {}, sinks } = bundle
  const text = Buffer.from(
    JSON.stringify({
      schema: 1,
      interpolation: 'none',
      pipelines,
      hub: { subscriptions },
      sources,
      transforms,
      sinks,
    } satisfies Bundle),
  )
  const rev = sha256(text)
  const files: Record<string, Buffer> = {}
  const shards = []
  for (let at = 0; at < text.length; at += shardBytes) {
    const part = text.subarray(at, at + shardBytes)
    const key: string = `r${rev.slice(0, 12)}-${shards.length}.json.gz`
    const file = gzipSync(part)
    files[key] = file
    shards.push({ key, sha256: sha256(file), bytes: part.length })
  }
  return { revision: { rev, shards }, files }
}

/** All files of a bundle folder. */
export function bundleFiles(
  stable: TestBundle | undefined,
  secrets: Readonly<Record<string, string>> = {},
  candidate?: TestBundle & Pick<Candidate, 'percent' | 'salt'>,
): { readonly files: Record<string, string | Buffer>; readonly rev: string } {
  const digests = Buffer.from(
    JSON.stringify(Object.fromEntries(Object.entries(secrets).map(([key, value]) => [key, sha256(value)]))),
  )
  const secretFile = gzipSync(digests)
  const epoch = sha256(digests).slice(0, 12)
  const stableParts = stable === undefined ? undefined : revisionOf(stable)
  const candidateParts = candidate === undefined ? undefined : revisionOf(candidate)
  const manifest: BundleManifest = {
    schema: 1,
    ...(stableParts === undefined ? {} : { stable: stableParts.revision }),
    ...(candidate === undefined || candidateParts === undefined
      ? {}
      : { candidate: { ...candidateParts.revision, percent: candidate.percent, salt: candidate.salt } }),
    secrets: { key: `s${epoch}.json.gz`, sha256: sha256(secretFile), bytes: digests.length },
    secretsEpoch: epoch,
    minAgentVersion: '0.0.1',
  }
  return {
    rev: (candidateParts ?? stableParts)?.revision.rev ?? '',
    files: {
      'manifest.json': JSON.stringify(manifest),
      [`s${epoch}.json.gz`]: secretFile,
      ...stableParts?.files,
      ...candidateParts?.files,
    },
  }
}
