// The shared files with credentials and settings: sections of `name = value` lines.
//
// Why not the loader of the SDK: it takes the home folder, and paths that are not given, from the environment of the process. A component
// gets its environment by its `Identity`.

import { createHash } from 'node:crypto'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../environment.ts'
import { PenstockError } from '../errors.ts'
import { readGivenTextLater } from '../given-file.ts'

export type Profile = Readonly<Record<string, string>>

/** A variable under its neutral name, else under the name that platforms inject. */
export function cloudVariable(env: Environment, name: string): string | undefined {
  const value = env[`CLOUD_${name}`] ?? env[`AWS_${name}`]
  return value === '' ? undefined : value
}

/** The address that the environment gives for a service, instead of its own. */
export function endpointOverride(
  env: Environment | undefined,
  service: 'ES' | 'SQS' | 'SSO' | 'STS',
): string | undefined {
  const value = env?.[`AWS_ENDPOINT_URL_${service}`] || env?.['AWS_ENDPOINT_URL']
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
    credentialsFile === undefined
      ? await firstFile(files.credentials)
      : await readGivenTextLater({ option: 'auth.credentials_file', path: credentialsFile })
  const config = await firstFile(files.config)
  const profiles = new Map<string, Profile>()
  for (const [name, profile] of parseSections(config ?? '')) profiles.set(name.replace(/^profile\s+/, ''), profile)
  for (const [name, profile] of parseSections(credentials ?? '')) {
    profiles.set(name, { ...profiles.get(name), ...profile })
  }
  return profiles
}

/**
 * The token that a sign-on has left.
 * @param key name of the session; for profiles of the older form the address at which the sign-on starts
 */
export async function readSignOnToken(env: Environment, key: string, profile: string, now: number): Promise<string> {
  const home = env['HOME'] ?? homedir()
  const file = `${createHash('sha1').update(key).digest('hex')}.json`
  const text = await firstFile(['.cloud', '.aws'].map((folder) => join(home, folder, 'sso', 'cache', file)))
  let token: { accessToken?: unknown; expiresAt?: unknown } = {}
  try {
    token = JSON.parse(text ?? '{}') as typeof token
  } catch {
    // A file that is not JSON holds no token, which is reported below; the error would quote its content.
  }
  const { accessToken, expiresAt } = token
  if (typeof accessToken !== 'string' || !(Date.parse(String(expiresAt)) > now)) {
    const state = typeof accessToken === 'string' ? 'has expired' : 'is not there'
    const advice = `Sign on again: aws sso login --profile ${profile}.`
    throw new PenstockError('PEN_AUTH', `The sign-on token of the profile \`${profile}\` ${state}. ${advice}`)
  }
  return accessToken
}

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    try {
      return await readGivenTextLater({ option: 'auth.profile', path })
    } catch {
      // Missing, or not readable: the next place is tried, and the final error lists the results.
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
