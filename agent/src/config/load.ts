// The entry point: turns files, or an object in memory, into a `Config` or a list of all problems.

import type { Registry } from '../component.ts'
import type { Environment } from '../environment.ts'
import { registry } from '../registry.ts'
import type { ProgramRules } from '../remap/rules.ts'
import type { Problem } from '../schema/problems.ts'
import { check, locatedObject } from './check.ts'
import type { LoadResult } from './config.ts'
import { readTables } from './enrichment.ts'
import { machineProblems } from './machine.ts'
import { merge } from './merge.ts'
import type { Located } from './place.ts'
import { type ReadOptions, readParts } from './read.ts'
import { putSecretsIn } from './secrets.ts'

export interface LoadOptions extends ReadOptions {
  /** The components that the configuration may use; by default all components of the agent. */
  readonly components?: Registry | undefined
  /** Whether a configuration without sources or sinks is valid. */
  readonly allowEmpty?: boolean | undefined
  /** Whether to check the data directory and the space for disk buffers, and to read secrets and tables; by default, yes. */
  readonly checkMachine?: boolean | undefined
}

/** Reads, merges and checks configuration files. */
export async function loadConfig(options: LoadOptions = {}): Promise<LoadResult> {
  const { parts, problems, files, emptyDirectories } = readParts(options)
  if (parts.length === 0 && options.allowEmpty !== true) {
    const message = 'this directory contains no .toml, .yaml, .yml or .json file'
    problems.push(...emptyDirectories.map((file): Problem => ({ severity: 'error', path: '', message, file })))
  }
  // An unreadable file may contain components that other files refer to, so the graph cannot be checked.
  const partial = problems.length > 0
  const raw = merge(parts, problems)
  const root: Located = {
    value: undefined,
    path: [],
    origins: parts.slice(0, 1).flatMap((part) => part.located.origins),
  }
  const environment = options.env ?? process.env
  const machine = options.checkMachine !== false
  const secretFiles = await putSecretsIn(raw, machine, problems)
  if (machine) problems.push(...(await machineProblems(raw)))
  const tables = machine ? readTables(raw, environment, problems) : undefined
  return check(raw, root, problems, {
    registry: options.components ?? registry,
    environment,
    allowEmpty: options.allowEmpty ?? false,
    files: [...files, ...secretFiles, ...(tables?.files ?? [])],
    tables,
    partial,
  })
}

export interface LoadObjectOptions {
  /** The components that the configuration may use; by default all components of the agent. */
  readonly components?: Registry | undefined
  /** Environment for proxies and the time zone. Empty by default, so that the result depends only on the object. */
  readonly env?: Environment | undefined
  readonly allowEmpty?: boolean | undefined
  /** The functions and limits of its programs; unlimited by default. */
  readonly programs?: ProgramRules | undefined
}

/** Checks a configuration that is already an object. Its text is literal: `$` has no special meaning. Pure. */
export function loadConfigObject(object: unknown, options: LoadObjectOptions = {}): LoadResult {
  const problems: Problem[] = []
  const root = locatedObject(object)
  const raw = merge([{ located: root, holds: 'all' }], problems)
  const { components = registry, env: environment = {}, allowEmpty = false, programs } = options
  return check(raw, root, problems, { registry: components, environment, allowEmpty, files: [], programs })
}
