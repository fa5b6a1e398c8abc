// Function `parse_url`.

import { setField, type ValueObject } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

const ports: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443, ftp: 21 }

export const parseUrl = defineFunction({
  name: 'parse_url',
  category: 'Parse',
  summary: 'Parses an absolute URL into its parts.',
  description: 'The URL is normalised by the URL Standard. The last value of a repeated query key is kept.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The URL.' },
    {
      name: 'default_known_ports',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to return the default port of the scheme for a URL without a port.',
    },
  ],
  returns: kinds.objectOf({
    scheme: kinds.string,
    username: kinds.string,
    password: kinds.string,
    path: kinds.string.or(kinds.null),
    host: kinds.string,
    port: kinds.integer.or(kinds.null),
    fragment: kinds.string.or(kinds.null),
    query: kinds.objectEach(kinds.string),
  }),
  // An address such as `mailto:` has no host.
  nominal: true,
  fallible: 'always',
  errors: ['The text is not an absolute URL.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source: 'parse_url!("https://example.com:8443/a?x=1#top")',
      result:
        '{ "fragment": "top", "host": "example.com", "password": "", "path": "/a", "port": 8443, "query": { "x": "1" }, "scheme": "https", "username": "" }',
    },
    { source: 'parse_url!("https://example.com/", default_known_ports: true).port', result: '443' },
    { source: '[parse_url!("http://a/#").fragment, parse_url!("http://a/").fragment]', result: '["", null]' },
    { source: 'parse_url("no url") ?? {}', result: '{  }' },
  ],
  compile:
    () =>
    (text: string, knownPorts: boolean): Result => {
      const url = URL.parse(text)
      if (url === null) return failure(`unable to parse url: ${valueText(text)} is not an absolute URL`)
      const scheme = url.protocol.slice(0, -1)
      const query: ValueObject = {}
      for (const [name, value] of url.searchParams) setField(query, name, value)
      return {
        scheme,
        username: url.username,
        password: url.password,
        path: /%5e/i.test(text) ? url.pathname : url.pathname.replaceAll('%5E', '^'),
        host: url.hostname === '' ? null : url.hostname,
        port: url.port === '' ? (knownPorts ? (ports[scheme] ?? null) : null) : Number(url.port),
        // An empty fragment counts as a fragment, but an empty query does not count as a query.
        fragment: url.hash === '' ? (url.href.endsWith('#') ? '' : null) : url.hash.slice(1),
        query,
      }
    },
})
