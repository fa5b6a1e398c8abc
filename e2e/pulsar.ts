// Reads Pulsar topics with the broker's own client, and calls its admin API.

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { command } from './command.ts'
import type { RunningService } from './services/service.ts'

export interface BrokerMessage {
  /** The topic, with its partition if it has one. */
  readonly topic: string
  readonly key: string | null
  /** The bytes of the key, from the broker's own client. */
  readonly hash: number | null
  readonly properties: Readonly<Record<string, string>>
  readonly eventTime: number
  readonly producer: string
  readonly value: Buffer
  /** The fields of a message that was read with the schema of its topic. */
  readonly record: Readonly<Record<string, string>> | undefined
}

const reader = resolve(import.meta.dirname, 'services/d/PulsarRead.java')

/** All messages of these topics, after this many have arrived and no more follow. */
export async function readTopics(
  server: RunningService,
  count: number,
  topics: readonly string[],
): Promise<BrokerMessage[]> {
  const { variables } = server
  const variable = (name: string) => variables[`PENSTOCK_TEST_PULSAR_${name}`] ?? ''
  const printed = await command(
    variable('JAVA'),
    [
      ...['-XX:TieredStopAtLevel=1', '-Xmx256m', '-cp', `${variable('LIB')}/*`, reader],
      ...[variable('TLS_URL'), variable('CA'), variable('ADMIN_TOKEN_FILE'), String(count), ...topics],
    ],
    { timeoutMs: 180_000 },
  )
  return printed
    .split('\n')
    .filter((line) => line.startsWith('{"topic":'))
    .map((line) => {
      const message = JSON.parse(line) as Omit<BrokerMessage, 'value'> & { readonly value?: string }
      return { ...message, value: Buffer.from(message.value ?? '', 'base64') }
    })
}

/** A token of the role `admin` (all permissions), `app` (granted permissions) or `expired`. */
export async function tokenOf(server: RunningService, role: 'admin' | 'app' | 'expired'): Promise<string> {
  const name = role === 'app' ? 'TOKEN_FILE' : `${role.toUpperCase()}_TOKEN_FILE`
  return (await readFile(server.variables[`PENSTOCK_TEST_PULSAR_${name}`] ?? '', 'utf8')).trim()
}

/** Calls the admin API; paths are relative to `/admin/v2`. */
export async function administer(
  server: RunningService,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const url = `${server.variables['PENSTOCK_TEST_PULSAR_ADMIN_URL']}/admin/v2${path}`
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${await tokenOf(server, 'admin')}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 500)}`)
  return text === '' ? undefined : JSON.parse(text)
}
