// The shared files with credentials and settings: sections of `name = value` lines.

import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

export type Environment = Readonly<Record<string, string | undefined>>
export type Profile = Readonly<Record<string, string>>

/** A variable under its neutral name, else under the one that platforms inject. */
export function cloudVariable(env: Environment, name: string): string | undefined {
  const value = env[`CLOUD_${name}`] ?? env[`AWS_${name}`]
  return value === '' ? undefined : value
}

/** Where the shared files are looked for, each kind in this order. */
export function profileFiles(env: Environment): { readonly credentials: string[]; readonly config: string[] } {
  const home = env['HOME'] ?? homedir()
  const named = (variable: string, file: string) =>
    [cloudVariable(env, variable), join(home, '.cloud', file), join(home, '.aws', file)].filter(
      (path) => path !== undefined,
    )
  return { credentials: named('SHARED_CREDENTIALS_FILE', 'credentials'), config: named('CONFIG_FILE', 'config') }
}

/** All profiles of the credentials file and the config file together; the former wins. */
export async function readProfiles(env: Environment, credentialsFile?: string): Promise<Map<string, Profile>> {
  const files = profileFiles(env)
  const credentials =
    credentialsFile === undefined ? await firstFile(files.credentials) : await readFile(credentialsFile, 'utf8')
  const config = await firstFile(files.config)
  const profiles = new Map<string, Profile>()
  for (const [name, profile] of parseSections(config ?? '')) profiles.set(name.replace(/^profile\s+/, ''), profile)
  for (const [name, profile] of parseSections(credentials ?? '')) {
    profiles.set(name, { ...profiles.get(name), ...profile })
  }
  return profiles
}

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    try {
      return await readFile(path, 'utf8')
    } catch {
      // Not there, or not ours to read: the next place is tried, and in the end what was found is told.
    }
  }
  return undefined
}

function parseSections(text: string): Map<string, Record<string, string>> {
  const sections = new Map<string, Record<string, string>>()
  let current: Record<string, string> | undefined
  for (const line of text.split(/\r?\n/)) {
    const section = /^\s*\[\s*([^\]]+?)\s*\]/.exec(line)
    if (section !== null) {
      current = sections.get(section[1] as string) ?? {}
      sections.set(section[1] as string, current)
      continue
    }
    const pair = /^\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line)
    if (pair !== null && current !== undefined) current[(pair[1] as string).toLowerCase()] = pair[2] as string
  }
  return sections
}
