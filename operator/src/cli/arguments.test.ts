import { expect, test } from 'vitest'
import { objectName } from './arguments.ts'

test.each([
  ['web-0', 'Pod', 'web-0'],
  ['pod/web-0', 'Pod', 'web-0'],
  ['po/web-0', 'Pod', 'web-0'],
  ['pipeline.penstock.dev/checkout', 'Pipeline', 'checkout'],
  ['Pipelines/checkout', 'Pipeline', 'checkout'],
  ['cpl/nodes', 'ClusterPipeline', 'nodes'],
] as const)('%s names the %s %s', (word, kind, name) => {
  expect(objectName(word, kind)).toBe(name)
})

test.each([
  ['shop/web-0', 'Pod', 'Expected the name of a Pod, or `pod/NAME`; found `shop/web-0`. Use `-n` for the namespace.'],
  [
    'clusterpipeline/nodes',
    'Pipeline',
    'Expected the name of a Pipeline, or `pipeline/NAME`; found `clusterpipeline/nodes`. Use `-n` for the namespace, and `--cluster` for a ClusterPipeline.',
  ],
] as const)('%s does not name a %s', (word, kind, message) => {
  expect(() => objectName(word, kind)).toThrow(message)
})
