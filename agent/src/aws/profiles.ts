// Reads the shared files with credentials and settings: sections of `name = value` lines.
//
// The loader of the SDK is not suitable, because it reads the home folder and default paths from the environment of the process. A
// component gets its environment through its `Identity`.

import { createHash } from 'node:crypto'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../environment.ts'
import { PenstockError } from '../errors.ts'
import { readGivenTextAsync } from '../given-file.ts'

export type Profile = Readonly<Record<string, string>>

/** A variable by its neutral name, or else by the name that platforms inject. */
export function cloudVariable(env: Environment, name: string): string | undefined {
  const value = env[`CLOUD_${name}`] ?? env[`AWS_${name}`]
  return value === '' ? undefined : value
}

/** The address in the environment that overrides the default address of a service. */
export function endpointOverride(
  env: Environment | undefined,
  service: 'ES' | 'SQS' | 'SSO' | 'STS',
): string | undefined {
  const value = env?.[`AWS_ENDPOINT_URL_${service}`] || env?.['AWS_ENDPOINT_URL']
  return value === '' ? undefined : value
}

/** The possible paths of the shared files, in order of precedence. */
export function profileFiles(env: Environment): { readonly credentials: string[]; readonly config: string[] } {
  const home = env['HOME'] ?? homedir()
  const named = (variable: string, file: string) =>
    [cloudVariable(env, variable), join(home, '.cloud', file), join(home, '.aws', file)].filter(
      (path) => path !== undefined,
    )
  return { credentials: named('SHARED_CREDENTIALS_FILE', 'credentials'), config: named('CONFIG_FILE', 'config') }
}

/** The merged profiles of the credentials file and the config file. The credentials file takes precedence. */
export async function readProfiles(env: Environment, credentialsFile?: string): Promise<Map<string, Profile>> {
  const files = profileFiles(env)
  const credentials =
    credentialsFile === undefined
      ? await firstFile(files.credentials)
      : await readGivenTextAsync({ option: 'auth.credentials_file', path: credentialsFile })
  const config = await firstFile(files.config)
  const profiles = new Map<string, Profile>()
  for (const [name, profile] of parseSections(config ?? '')) profiles.set(name.replace(/^profile\s+/, ''), profile)
  for (const [name, profile] of parseSections(credentials ?? '')) {
    profiles.set(name, { ...profiles.get(name), ...profile })
  }
  return profiles
}

/**
 * The cached token of a sign-on.
 * @param key name of the session; for older profiles, the start URL of the sign-on
 */
export async function readSignOnToken(env: Environment, key: string, profile: string, now: number): Promise<string> {
  const home = env['HOME'] ?? homedir()
  const file = `${createHash('sha1').update(key).digest('hex')}.json`
  const text = await firstFile(['.cloud', '.aws'].map((folder) => join(home, folder, 'sso', 'cache', file)))
  let token: { accessToken?: unknown; expiresAt?: unknown } = {}
  try {
    token = JSON.parse(text ?? '{}') as typeof token
  } catch {
    // A file that is not JSON contains no token, which is reported below. The parser's error would quote its content.
  }
  const { accessToken, expiresAt } = token
  if (typeof accessToken !== 'string' || !(Date.parse(String(expiresAt)) > now)) {
    const state = typeof accessToken === 'string' ? 'has expired' : 'does not exist'
    const advice = `Sign on again: aws sso login --profile ${profile}.`
    throw new PenstockError('PEN_AUTH', `The sign-on token of the profile \`${profile}\` ${state}. ${advice}`)
  }
  return accessToken
}

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    try {
      return await readGivenTextAsync({ option: 'auth.profile', path })
    } catch {
      // The file is missing or not readable: try the next place. The final error lists all places.
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
