// Sample lines of the formats of `demo_logs`.

import { Timestamp } from '../../event/timestamp.ts'
import { formatTimestamp, strftime } from '../../formats/datetime.ts'

export const demoFormats = ['apache_common', 'apache_error', 'json', 'syslog', 'bsd_syslog'] as const
export type DemoFormat = (typeof demoFormats)[number]

const users = ['ahmadajmi', 'benefritz', 'devankoshal', 'jesseddy', 'meln1ks', 'otherwise', 'shaneIxD', 'thankarezos']
const paths = [
  '/',
  '/account/login',
  '/api/v1/orders',
  '/cart',
  '/health',
  '/images/logo.png',
  '/products/42',
  '/search',
]
const methods = ['DELETE', 'GET', 'GET', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT']
const statuses = [200, 200, 200, 201, 204, 301, 304, 400, 401, 404, 500, 503]
const hosts = ['make.invalid', 'names.example', 'shop.example', 'some.example', 'up.invalid']
const programs = ['authsvc', 'cartsvc', 'cron', 'dhcpd', 'ordersvc', 'sshd']
const levels = ['alert', 'crit', 'debug', 'emerg', 'error', 'info', 'notice', 'warn']
const modules = ['access_compat', 'core', 'proxy', 'rewrite', 'ssl']
const sentences = [
  'A connection was closed by the peer before the answer was complete',
  'Configuration read again, nothing has changed',
  'Could not reach the database, trying again in 5 seconds',
  'Order accepted and handed to the warehouse',
  'Request took longer than expected',
  'There is a user waiting for an answer',
  'We are going to need a bigger queue',
]

const commonTime = strftime('%d/%b/%Y:%H:%M:%S +0000')
const errorTime = strftime('%a %b %d %H:%M:%S %Y')
const bsdTime = strftime('%b %e %H:%M:%S')

function any<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T
}

function below(limit: number): number {
  return Math.floor(Math.random() * limit)
}

function address(): string {
  return `${1 + below(223)}.${below(256)}.${below(256)}.${1 + below(254)}`
}

export function demoLine(format: DemoFormat, date: Date): string {
  const now = new Timestamp(date.getTime(), 0)
  switch (format) {
    case 'apache_common':
      return `${address()} - ${any(users)} [${formatTimestamp(commonTime, now)}] "${any(methods)} ${any(paths)} HTTP/1.1" ${any(statuses)} ${below(50_000)}`
    case 'apache_error':
      return `[${formatTimestamp(errorTime, now)}] [${any(modules)}:${any(levels)}] [pid ${below(32_768)}:tid ${below(32_768)}] [client ${address()}:${1024 + below(60_000)}] ${any(sentences)}`
    case 'json':
      return JSON.stringify({
        host: address(),
        'user-identifier': any(users),
        datetime: formatTimestamp(commonTime, now),
        method: any(methods),
        request: any(paths),
        protocol: 'HTTP/1.1',
        status: any(statuses),
        bytes: below(50_000),
        referer: `https://${any(hosts)}${any(paths)}`,
      })
    case 'syslog':
      return `<${below(192)}>1 ${now} ${any(hosts)} ${any(programs)} ${1 + below(32_768)} ID${below(1000)} - ${any(sentences)}`
    case 'bsd_syslog':
      return `<${below(192)}>${formatTimestamp(bsdTime, now)} ${any(hosts).split('.')[0]} ${any(programs)}[${1 + below(32_768)}]: ${any(sentences)}`
  }
}
