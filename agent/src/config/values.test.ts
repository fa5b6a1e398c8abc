import { expect, test } from 'vitest'
import { loadConfigObject } from './load.ts'

/** The warnings for a sink with these TLS files. */
function warningsWith(tls: object): readonly { readonly path?: string | undefined; readonly message: string }[] {
  const result = loadConfigObject({
    sources: { in: { type: 'stdin' } },
    sinks: { out: { type: 'http', inputs: ['in'], uri: 'https://h', encoding: { codec: 'json' }, tls } },
    secret: { vault: { type: 'file', path: '/vault.json' } },
  })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return result.warnings
}

test('a relative path to a TLS file causes a warning that does not show the path', () => {
  const warnings = warningsWith({ ca_file: 'hunter2.pem', crt_file: './crt.pem', key_file: '../key.pem' })
  expect(warnings.map(({ path, message }) => [path, message])).toEqual([
    ['sinks.out.tls.ca_file', 'the path is not absolute'],
    ['sinks.out.tls.crt_file', 'the path is not absolute'],
    ['sinks.out.tls.key_file', 'the path is not absolute'],
  ])
  expect(JSON.stringify(warnings)).not.toContain('hunter2')
})

test.each([
  { ca_file: '/etc/ca.pem' },
  { ca_file: '-----BEGIN CERTIFICATE-----\n' },
  // The check does not read this secret.
  { crt_file: 'SECRET[vault.crt]', key_file: 'SECRET[vault.key]' },
])('%j causes no warning', (tls) => {
  expect(warningsWith(tls)).toEqual([])
})
