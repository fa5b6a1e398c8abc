// Connection options that outputs of Fluent Bit share, and their counterparts.

import { minDiskBuffer } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { type Context, common, matched } from './plugin.ts'
import { bytesOf, entriesOf, isOn, lastValue, type Section } from './sections.ts'

const address = { host: 'the address', port: 'the address', tls: '`https` in the address' } as const
export const security = {
  'tls.verify': '`tls.verify_certificate`, `tls.verify_hostname`',
  'tls.verify_hostname': '`tls.verify_hostname`; without it, the sink verifies the name, whereas Fluent Bit does not',
  'tls.ca_file': '`tls.ca_file`',
  'tls.crt_file': '`tls.crt_file`',
  'tls.key_file': '`tls.key_file`',
  'tls.key_passwd': '`tls.key_pass`',
  'tls.vhost': '`tls.server_name`',
} as const
export const login = { http_user: '`auth`', http_passwd: '`auth`' } as const
export const delivery = {
  retry_limit: '`request.retry_attempts`; without it, the sink retries forever, whereas Fluent Bit retries once',
} as const
export const sized = { 'storage.total_limit_size': 'a disk buffer' } as const
export const local = { ...common, ...matched } as const
export const always = { ...local, ...address, ...security, ...delivery, ...sized } as const
export const itself = {
  workers: '`request.concurrency` limits concurrent requests',
  buffer_size: 'the sink reads responses without a size option',
  trace_error: 'the agent logs errors with their responses',
  trace_output: '`penstock tap` shows events',
  log_response_payload: 'the agent logs errors with their responses',
  log_level: 'the agent has one log level',
  'tls.debug': 'the agent has one log level',
} as const

/** Options of outputs without a connection. */
export const unbuffered = {
  ...itself,
  retry_limit: 'the sink sends no requests',
  'storage.total_limit_size': {
    how: '`buffer` of the sink',
    unless: /./,
    reason: 'the limit is for chunks on disk, and the sink keeps its events in memory',
    nearest: 'Set `buffer: {type: disk, max_size: BYTES}` of the sink.',
  },
} as const

/** Environment variables as references to a Secret. */
export function secret(text: string): string {
  return text.replace(/\$\{([A-Za-z0-9_]+)\}/g, 'SECRET[env.$1]')
}

export function value(section: Section, key: string): string | undefined {
  const found = lastValue(section, key)
  return found === undefined ? undefined : secret(found)
}

/** The compression of requests, if the sink supports it under this name. */
export function compressed(
  section: Section,
  context: Context,
  known: readonly string[] = ['gzip'],
): { readonly compression?: string } {
  const entry = entriesOf(section, 'compress').at(-1)
  const word = entry?.value.trim().toLowerCase() ?? ''
  if (entry === undefined || /^(?:|none|off|false|no)$/.test(word)) return {}
  if (known.includes(word)) return { compression: word }
  const nearest = `The sink sends requests without compression. It supports ${known.map((name) => `\`${name}\``).join(', ')}.`
  context.gap(
    entry,
    `${lastValue(section, 'name')}: compress ${entry.value}`,
    'the sink does not support this compression',
    nearest,
  )
  return {}
}

/** A path as Fluent Bit sends it: with a slash before it. */
export const rooted = (path: string) => (path === '' || path.startsWith('/') ? path : `/${path}`)

export function addressOf(section: Section, port: string, path: string): string {
  const isSecure = isOn(lastValue(section, 'tls'), false)
  const host = value(section, 'host') ?? '127.0.0.1'
  return `${isSecure ? 'https' : 'http'}://${host}:${value(section, 'port') ?? port}${rooted(path)}`
}

/** Options of a service that uses TLS on its default port. */
export function serviceAddress(section: Section, service: string): string {
  const scheme = isOn(lastValue(section, 'tls'), true) ? 'https' : 'http'
  const port = value(section, 'port')
  return `${scheme}://${value(section, 'host') ?? service}${port === undefined ? '' : `:${port}`}`
}

/** Options of `tls` with a text, and their names in Fluent Bit. */
const tlsTexts = {
  ca_file: 'ca_file',
  crt_file: 'crt_file',
  key_file: 'key_file',
  key_pass: 'key_passwd',
  server_name: 'vhost',
} as const

export function connection(section: Section): Record<string, unknown> {
  const tls: Record<string, unknown> = {}
  if (!isOn(lastValue(section, 'tls.verify'), true)) {
    tls['verify_certificate'] = false
    tls['verify_hostname'] = false
  } else if (lastValue(section, 'tls.verify_hostname') !== undefined) {
    tls['verify_hostname'] = isOn(lastValue(section, 'tls.verify_hostname'), true)
  }
  for (const [option, old] of Object.entries(tlsTexts)) {
    const text = value(section, `tls.${old}`)
    if (text !== undefined) tls[option] = text
  }
  const user = value(section, 'http_user')
  const password = value(section, 'http_passwd')
  const retries = lastValue(section, 'retry_limit')
  const attempts = retries === undefined ? undefined : /^\d+$/.test(retries) ? Number(retries) : undefined
  const noRetries = retries?.toLowerCase() === 'no_retries' ? 0 : undefined
  const limit = attempts ?? noRetries
  return {
    ...(Object.keys(tls).length > 0 ? { tls } : {}),
    ...(user === undefined ? {} : { auth: { strategy: 'basic', user, password: password ?? '' } }),
    ...(limit === undefined ? {} : { request: { retry_attempts: limit } }),
    ...buffer(section),
  }
}

/** A limit for chunks on disk as a disk buffer. */
function buffer(section: Section): Record<string, unknown> {
  const size = bytesOf(lastValue(section, 'storage.total_limit_size'))
  return size === undefined ? {} : { buffer: { type: 'disk', max_size: Math.max(size, minDiskBuffer) } }
}

export const remap = (...lines: readonly string[]): readonly Step[] => [{ type: 'remap', text: lines.join('\n') }]
