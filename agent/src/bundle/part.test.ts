import { expect, test } from 'vitest'
import { defaultBudget, type ProgramBudget } from '../remap/rules.ts'
import { loadPart, type PipelinePart } from './part.ts'

/** A bundle part with one program between a source and a sink. */
function loaded(
  restricted: boolean,
  transform: Readonly<Record<string, unknown>>,
  programBudget?: Partial<ProgramBudget>,
) {
  const part: PipelinePart = {
    id: 'shop/p',
    pipeline: {
      uid: 'u',
      generation: 1,
      hash: 'h',
      ...(restricted ? { restricted: true } : {}),
      ...(programBudget === undefined ? {} : { programBudget }),
    },
    subscriptions: [],
    sources: { 'shop/p/in': { type: 'demo_logs', format: 'json' } },
    transforms: { 'shop/p/t': { inputs: ['shop/p/in'], ...transform } },
    sinks: { 'shop/p/out': { type: 'blackhole', inputs: ['shop/p/t'] } },
  }
  const secrets = { value: () => undefined, digest: () => undefined }
  return loadPart(part, secrets, { dataDir: '/tmp', denied: [], env: {} })
}

test.each([
  { type: 'remap', source: '_, .e = validate_json_schema("{}", "/etc/hostname")' },
  { type: 'remap', source: '.a = get_env_var!("HOME")' },
  { type: 'remap', file: '/etc/hostname' },
  { type: 'filter', condition: 'get_env_var!("HOME") == "/"' },
])(
  'a restricted pipeline whose programs reach beyond the event is not loaded, even if other checks accept it: %j',
  (transform) => {
    expect(loaded(true, transform)).toMatchObject({ ok: false, problems: [{ severity: 'error' }] })
  },
)

test('the rules of a pipeline apply to its transforms', () => {
  const transform = { type: 'remap', source: '.a = 1' }
  const [strict, free] = [loaded(true, transform), loaded(false, transform)]
  if (!strict.ok || !free.ok) throw new TypeError('the parts do not load')
  expect(strict.config.transforms.get('shop/p/t')?.programs).toMatchObject({ reach: 'nothing' })
  expect(free.config.transforms.get('shop/p/t')?.programs).toBeUndefined()
})

test.each([
  { given: { turns: 7 }, expected: { ...defaultBudget, turns: 7 } },
  { given: { bytes: 2 * defaultBudget.bytes }, expected: { ...defaultBudget, bytes: 2 * defaultBudget.bytes } },
  { given: undefined, expected: defaultBudget },
])('programs get the budget of the bundle, and the default for missing values: $given', ({ given, expected }) => {
  const part = loaded(true, { type: 'remap', source: '.a = 1' }, given)
  if (!part.ok) throw new TypeError('the part does not load')
  expect(part.config.transforms.get('shop/p/t')?.programs?.budget).toEqual(expected)
})
