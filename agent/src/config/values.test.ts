import { expect, test } from 'vitest'
import { loadConfigObject } from './load.ts'

/** Warnings of a sink with these files. */
function warningsWith(tls: object): readonly { readonly path?: string | undefined; readonly message: string }[] {
  const result = loadConfigObject({
    sources: { in: { type: 'stdin' } },
    sinks: { out: { type: 'http', inputs: ['in'], uri: 'https://h', encoding: { codec: 'json' }, tls } },
    secret: { vault: { type: 'file', path: '/vault.json' } },
  })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return result.warnings
}

test('a relative path to a TLS file brings a warning, which does not show it', () => {
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
  { crt_file: '-----BEGIN CERTIFICATE-----\n', key_file: '/etc/key.pem', key_pass: 'p' },
  { crt_file: '/etc/identity.p12', key_pass: 'p' },
  // A secret that is not read for this check.
  { crt_file: 'SECRET[vault.crt]', key_file: 'SECRET[vault.key]' },
])('%j brings none', (tls) => {
  expect(warningsWith(tls)).toEqual([])
})

test.each(['key_file', 'key_pass'])('`%s` without a certificate brings a warning that it has no effect', (name) => {
  expect(warningsWith({ [name]: '/etc/key.pem' })).toEqual([
    expect.objectContaining({
      path: `sinks.out.tls.${name}`,
      message: `\`${name}\` has no effect without \`crt_file\``,
    }),
  ])
})

test('the text of a certificate without its key is a problem before anything is read', () => {
  expect(() => warningsWith({ crt_file: '-----BEGIN CERTIFICATE-----\n' })).toThrow(
    'sinks.out.tls.crt_file","message":"needs `key_file`, which is missing"',
  )
})
