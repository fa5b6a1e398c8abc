// Loads the configuration from the command line, for commands that examine it. Problems go to standard error.

import type { Config } from '../config/config.ts'
import type { LoadOptions } from '../config/load.ts'
import { loadConfig } from '../config/load.ts'
import { renderProblems } from '../config/render.ts'
import type { Problem } from '../schema/problems.ts'
import { sheetOf } from '../terminal.ts'

/** Values of the flags that locate the configuration. */
export interface ConfigFlagValues {
  readonly config: readonly string[]
  readonly 'config-dir': readonly string[]
  readonly 'config-toml': readonly string[]
  readonly 'config-yaml': readonly string[]
  readonly 'config-json': readonly string[]
}

/** @param words paths in addition to the flags; if there are any, paths from the environment are ignored */
export function loadOptions(flags: ConfigFlagValues, words: readonly string[]): LoadOptions {
  const fromEnvironment = words.length > 0 && flags.config.join() === (process.env['PENSTOCK_CONFIG'] ?? '')
  return {
    paths: [...(fromEnvironment ? [] : flags.config), ...words],
    dirs: flags['config-dir'],
    formats: { toml: flags['config-toml'], yaml: flags['config-yaml'], json: flags['config-json'] },
  }
}

/** Loads the configuration; undefined if it has errors, which have been printed. */
export async function loadedConfig(
  flags: ConfigFlagValues,
  words: readonly string[],
  options: LoadOptions,
): Promise<{ readonly config: Config; readonly warnings: readonly Problem[] } | undefined> {
  const result = await loadConfig({ ...loadOptions(flags, words), ...options })
  const problems = result.ok ? result.warnings : result.problems
  if (problems.length > 0) {
    process.stderr.write(`${renderProblems(problems, sheetOf(process.stderr))}\n`)
  }
  return result.ok ? { config: result.config, warnings: result.warnings } : undefined
}
