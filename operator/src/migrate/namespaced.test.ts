// Conversions for a namespace: what they print passes lint, except for parts that a TenantPolicy may allow, which the report names.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type CorpusCase, convertedCase, corpus, lintErrors } from '../testing/corpus.ts'
import { fitNamespace } from './namespaced.ts'

const output = mkdtempSync(join(tmpdir(), 'penstock-namespaced-'))
afterAll(() => rmSync(output, { recursive: true }))

const identity = { name: 'converted', namespace: 'shop' }

function converted(given: Pick<CorpusCase, 'file' | 'text'>) {
  const { draft } = convertedCase(given, identity.namespace)
  const refused = fitNamespace(draft, identity, given.file)
  const documents = [...draft.agents(identity), ...draft.documents(identity)]
  return { draft, refused, text: documents.map((document) => document.toString({ lineWidth: 0 })).join('---\n') }
}

let accepted = 0
test.each(corpus)('$agent: $about', (given: CorpusCase) => {
  const { draft, refused, text } = converted(given)
  if (draft.ofFiles().length + refused.length > 0) return
  accepted++
  const reasons = draft.gaps.map(({ reason }) => reason)
  const unnamed = lintErrors(text, output, 'shop').filter((error) => !reasons.some((reason) => error.endsWith(reason)))
  expect(unnamed).toEqual([])
})

test('many configurations are converted for a namespace', () => {
  expect(accepted).toBeGreaterThan(200)
})

const sink = (options: string) => ({
  file: 'vector.yaml',
  text: `sources: { k: { type: kubernetes_logs } }
sinks:
  o: { type: http, inputs: [k], encoding: { codec: json }, ${options} }
`,
})

test('files with certificates become keys of one Secret, and the report has the command that creates it', () => {
  const files = 'ca_file: /etc/a/tls.pem, crt_file: /etc/b/tls.pem, key_file: "/etc/my key.pem"'
  const { draft, refused, text } = converted(sink(`uri: "https://in.example", tls: { ${files} }`))
  expect(refused).toEqual([])
  expect(lintErrors(text, output, 'shop')).toEqual([])
  expect([...text.matchAll(/name: converted-files\n\s+key: (\S+)/g)].map(([, key]) => key)).toEqual([
    'tls.pem',
    '2-tls.pem',
    'my-key.pem',
  ])
  const rows = draft.gaps.filter(({ reason }) => reason.includes('reads no files of the node'))
  expect(rows.map(({ subject, line }) => [subject, line])).toEqual([
    ['o', 3],
    ['o', 3],
    ['o', 3],
  ])
  expect(rows[0]?.nearest).toBe(
    "Create the Secret: kubectl -n shop create secret generic converted-files --from-file=tls.pem=/etc/a/tls.pem --from-file=2-tls.pem=/etc/b/tls.pem '--from-file=my-key.pem=/etc/my key.pem'",
  )
})

test.each([
  { what: 'the machine itself', options: 'uri: "http://localhost:80"', says: /^ {2}sink `o`: .*host "localhost".*T7/ },
])('$what is refused', ({ options, says }) => {
  expect(converted(sink(options)).refused).toEqual([expect.stringMatching(says)])
})

test('a source that a TenantPolicy may allow becomes a gap, and so does the identity of the node', () => {
  const { draft, refused } = converted({
    file: 'vector.yaml',
    text: `sources:
  q: { type: aws_sqs, region: eu-west-1, queue_url: "https://sqs.eu-west-1.amazonaws.com/1/q" }
sinks:
  o: { type: http, inputs: [q], uri: "https://in.example", encoding: { codec: json } }
`,
  })
  expect(refused).toEqual([])
  const open = draft.gaps.filter(({ isReplaced }) => isReplaced !== true)
  expect(open.map(({ line, reason, nearest }) => [line, reason, nearest])).toEqual([
    [2, expect.stringMatching(/not allowed in this namespace \(T9\)/), expect.stringContaining('TenantPolicy')],
    [2, expect.stringMatching(/\(T5\)/), expect.stringContaining('Secret')],
  ])
})
