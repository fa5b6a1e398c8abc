// Chains of Ruby methods on a field of any type: each chain becomes an expression that compiles, or is unsupported.

import { compileProgram } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { Draft } from '../draft.ts'
import { convertFluentd } from './convert.ts'

const methods = ['to_s', 'to_i', 'to_f', 'to_json', 'downcase', 'upcase', 'strip', 'chomp']

test.each(methods)('chains that begin with `%s` give a valid program', (first) => {
  const chains = methods.flatMap((second) => [[first, second], ...methods.map((third) => [first, second, third])])
  const values = [[first], ...chains].map((chain) => `record["level"].${chain.join('.')}`)
  const wrong = values.filter((value) => {
    const draft = new Draft()
    const text = `<source>\n  @type tail\n  path /a\n  tag a\n</source>\n<filter **>\n  @type record_transformer\n  enable_ruby true\n  <record>\n    x \${${value}}\n  </record>\n</filter>\n<match **>\n  @type stdout\n</match>\n`
    convertFluentd([{ file: 'fluent.conf', text }], () => [], draft)
    const { transforms } = draft.document({ name: 'x' }).toJS().spec as {
      transforms: { config: { source?: string } }[]
    }
    const isInvalid = draft.gaps.some(({ reason }) => reason.includes('is not valid'))
    return isInvalid || !transforms.every(({ config }) => compileProgram(config.source ?? '.').ok)
  })
  expect(wrong).toEqual([])
})
