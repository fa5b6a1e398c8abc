// The real `helm`, built once from its Go module into the cache, and its rendered objects.

import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { cacheFolder } from './cache.ts'
import { present } from './cluster/cluster.ts'
import { type CommandOptions, command, root } from './command.ts'
import { ensureGo } from './go.ts'

const version = 'v3.22.0'
const folder = join(cacheFolder, `helm-${version}`)
export const helmCommand = join(folder, 'helm')

/** The Kubernetes version for rendering. A helm built from its module defaults to a very old one. */
const kubeVersion = '1.36.0'

/** The reason why there is no helm; undefined if there is. */
export function missingForHelm(): string | undefined {
  if (existsSync(helmCommand)) return undefined
  if (process.env['PENSTOCK_TEST_INSTALL'] === '0') return 'helm is not built, and PENSTOCK_TEST_INSTALL=0 forbids it'
  return present('go') ? undefined : 'Go is missing, which builds helm'
}

/** Builds helm unless it exists. */
export async function prepareHelm(options: CommandOptions = {}): Promise<void> {
  if (existsSync(helmCommand)) return
  await ensureGo()
  await mkdir(folder, { recursive: true })
  await command('flock', [join(cacheFolder, '.helm.lock'), 'go', 'install', `helm.sh/helm/v3/cmd/helm@${version}`], {
    timeoutMs: 1_800_000,
    ...options,
    env: { GOBIN: folder, GOFLAGS: '-trimpath' },
  })
}

export const chart = (name: 'penstock' | 'penstock-crds' = 'penstock') => join(root, 'charts', name)

// biome-ignore lint/suspicious/noExplicitAny: the formats of the files belong to another program
type Change = (content: any) => void

/** Copies a chart to a folder and changes files of the copy, which are YAML or JSON. */
export async function changedChart(
  folder: string,
  name: 'penstock' | 'penstock-crds',
  changes: Readonly<Record<string, Change>>,
): Promise<string> {
  const copy = join(folder, name)
  await cp(chart(name), copy, { recursive: true })
  for (const [path, change] of Object.entries(changes)) {
    const content = parse(await readFile(join(copy, path), 'utf8'))
    change(content)
    await writeFile(join(copy, path), path.endsWith('.json') ? JSON.stringify(content) : stringify(content))
  }
  return copy
}

export function helm(args: readonly string[], options: CommandOptions = {}): Promise<string> {
  return command(helmCommand, args, options)
}

export interface RenderedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Record<string, string>
    readonly annotations?: Record<string, string>
  }
  readonly [field: string]: unknown
}

/** The output of `helm template`. */
export function helmTemplate(
  values: object = {},
  name: 'penstock' | 'penstock-crds' = 'penstock',
  ...flags: readonly string[]
): Promise<string> {
  const args = ['template', 'penstock', chart(name), '--namespace', 'penstock-system', '--kube-version', kubeVersion]
  return helm([...args, ...flags, '--values', '-'], { input: JSON.stringify(values) })
}

/** The objects of a YAML stream. */
export function objectsOf(text: string): RenderedObject[] {
  return parseAllDocuments(text).flatMap((document) => {
    const object = document.toJS() as RenderedObject | null
    return object === null ? [] : [object]
  })
}
