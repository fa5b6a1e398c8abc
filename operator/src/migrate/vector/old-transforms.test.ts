// Transforms of old Vector versions: an event that passes their replacements must be the same as with the old transform.

import { loadConfigObject, runUnitTests } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { Draft } from '../draft.ts'
import { convertVector } from './convert.ts'

const counter = (tags: object) => ({ name: 'hits', kind: 'absolute', counter: { value: 1 }, tags })

test.each([
  {
    about: 'tags are set',
    options: { type: 'add_tags', tags: { a: 'b', 'x.y': '1' } },
    tags: { a: 'z' },
    expected: { a: 'b', 'x.y': '1' },
  },
  {
    about: 'existing tags stay',
    options: { type: 'add_tags', tags: { a: 'b', c: 'd' }, overwrite: false },
    tags: { a: 'z' },
    expected: { a: 'z', c: 'd' },
  },
  {
    about: 'tags are removed',
    options: { type: 'remove_tags', tags: ['a', 'x.y'] },
    tags: { a: 'z', 'x.y': '1', k: 'v' },
    expected: { k: 'v' },
  },
])('$about', async ({ options, tags, expected }) => {
  const config = {
    sources: { m: { type: 'internal_metrics' } },
    transforms: { t: { ...options, inputs: ['m'] } },
    sinks: { out: { type: 'console', inputs: ['t'], encoding: { codec: 'json' } } },
  }
  const draft = new Draft()
  convertVector([{ file: 'vector.json', text: JSON.stringify(config) }], () => [], draft)
  expect(draft.gaps).toEqual([])
  const { spec } = draft.document({ name: 'shop' }).toJS() as {
    spec: { transforms: { name: string; type: string; inputs: string[]; config: object }[] }
  }
  const [made] = spec.transforms
  const loaded = loadConfigObject({
    sources: { m: { type: 'internal_metrics' } },
    transforms: { t: { type: made?.type, inputs: ['m'], ...made?.config } },
    sinks: { out: { type: 'blackhole', inputs: ['t'] } },
    tests: [
      {
        name: 'tags',
        inputs: [{ insert_at: 't', type: 'metric', metric: counter(tags) }],
        outputs: [
          {
            extract_from: 't',
            conditions: [{ type: 'vrl', source: `assert_eq!(.tags, ${JSON.stringify(expected)})` }],
          },
        ],
      },
    ],
  })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const { passed, text } = await runUnitTests(loaded.config)
  expect(passed, text).toBe(true)
})
