// The condition after a compile: every mistake of a program, each with its location.

import { expect, test } from 'vitest'
import { compileJob } from './job.ts'

const store = { type: 'http', config: { uri: 'http://store.example/', encoding: { codec: 'json' } } }
const accepted = async (source: string, sink: object = store) => {
  const pipeline = {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Pipeline',
    metadata: { name: 'p', namespace: 'shop', uid: 'u', generation: 1 },
    spec: {
      sources: [{ name: 'app', type: 'orchestrator_logs' }],
      transforms: [{ name: 'parse', type: 'remap', config: { source } }],
      sinks: [{ name: 'out', ...sink }],
    },
  } as const
  const job = { pipeline, resources: [], policy: undefined, apiHosts: [], clusterName: 'c', unseen: [], keys: {} }
  return (await compileJob(job as unknown as Parameters<typeof compileJob>[0])).accepted
}

test.each([
  ['.a = 1', ''],
  ['.a = nope(.b)', 'transforms[parse] line 1 col 6: E105 call to undefined function'],
  [
    '.a = nope(.b)\n.c = parse_json(.message)',
    'transforms[parse] line 1 col 6: E105 call to undefined function; line 2 col 6: E103 unhandled fallible assignment',
  ],
  ['.a = = 1', 'transforms[parse] line 1 col 6: E203 syntax error: unexpected "=", expected an expression'],
  ['.a =', 'transforms[parse] line 1 col 5: E204 unexpected end of program: expected an expression'],
  ['.a = upcase("x" "y")', 'transforms[parse] line 1 col 17: E203 syntax error: unexpected ""y"", expected "," or ")"'],
  [
    Array.from({ length: 7 }, (_, index) => `.a${index} = nope()`).join('\n'),
    expect.stringMatching(/(?:line \d col 7: E105 [^;]+; ){4}line 5 col 7: E105 [^;]+ \(and 2 more\)$/),
  ],
])('the program %j is accepted with the message %j', async (source, message) => {
  expect((await accepted(source)).message).toEqual(message)
})

test('a Pipeline waits for an object that does not exist or is not granted, and the condition that names it has the cause', async () => {
  const waiting = await accepted('.a = 1', { ref: { kind: 'Sink', name: 'store' } })
  expect(waiting).toEqual({
    status: 'Unknown',
    reason: 'Pending',
    message: 'It waits for objects that it refers to: `ResolvedRefs` names them.',
  })
})
