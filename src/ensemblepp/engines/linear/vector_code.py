"""Vector code written by hand, instruction by instruction, for the scores and passes of `kernel`.

LLVM would keep neither a tile of sums in registers nor one order of operations at every place; both are fixed here. Every
product is added by a fused multiply-add, so results are the same to the last bit in every register width, position and tile.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ensemblepp.compilation.keys import processor_features

#: Bytes of a vector register, and how many registers there are: of the processor that numba compiles for, which is not this one
#: where its settings name another.
REGISTER_BYTES, REGISTERS = (64, 32) if "avx512f" in processor_features() else (32, 16)


def _words(context, builder, signature, values):
    """The index type, a function that makes constants of it, and one that gives the data of an array argument."""
    index = context.get_value_type(types.intp)

    def number(value):
        return ir.Constant(index, value)

    def data(position):
        return context.make_array(signature.args[position])(context, builder, values[position]).data

    return index, number, data


def _splat(builder, value, vector):
    """`value` in every lane."""
    undefined, lanes = ir.Constant(vector, ir.Undefined), vector.count
    filled = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(filled, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


def _fma(builder, lanes, size):
    """The fused multiply-add of vectors: a b + c, rounded once."""
    vector = ir.VectorType(ir.DoubleType() if size == 8 else ir.FloatType(), lanes)
    kind = ir.FunctionType(vector, [vector] * 3)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{lanes}f{8 * size}")


def tile(chains: int, panels: int):
    """A function that scores groups of `panels` panels for `chains` chains and keeps, lane by lane, the best and its panel."""

    @intrinsic
    def score(typing_context, arms, first, groups, dimension, theta, best, where):
        """arms[(panel * dimension + feature) * width + lane], theta[feature, chain], best and where [chain, lane]."""
        signature = types.void(arms, types.intp, types.intp, types.intp, theta, best, where)
        double = arms.dtype == types.float64
        size = 8 if double else 4
        lanes = REGISTER_BYTES // size
        real = ir.DoubleType() if double else ir.FloatType()
        whole = ir.IntType(32)
        vector, integers = ir.VectorType(real, lanes), ir.VectorType(whole, lanes)

        def codegen(context, builder, signature, values):
            index, number, data = _words(context, builder, signature, values)
            _, first, groups, dimension = values[:4]
            fma = _fma(builder, lanes, size)
            table = builder.bitcast(data(0), vector.as_pointer())
            parameters = data(4)
            best_rows = builder.bitcast(data(5), vector.as_pointer())
            where_rows = builder.bitcast(data(6), integers.as_pointer())
            zero = ir.Constant(vector, [0.0] * lanes)

            with cgutils.for_range(builder, groups, intp=index) as loop:
                panel = builder.add(first, builder.mul(loop.index, number(panels)))
                bases = [builder.mul(builder.add(panel, number(j)), dimension) for j in range(panels)]
                entry = builder.block
                body, done = (builder.append_basic_block(name) for name in ("features", "scored"))
                builder.branch(body)
                builder.position_at_end(body)
                feature = builder.phi(index)
                feature.add_incoming(number(0), entry)
                sums = [builder.phi(vector) for _ in range(chains * panels)]
                for value in sums:
                    value.add_incoming(zero, entry)
                loaded = [builder.load(builder.gep(table, [builder.add(base, feature)]), align=size) for base in bases]
                row = builder.mul(feature, number(chains))
                scores = []
                for chain in range(chains):
                    factor = _splat(builder, builder.load(builder.gep(parameters, [builder.add(row, number(chain))])), vector)
                    for j in range(panels):
                        scores.append(builder.call(fma, [loaded[j], factor, sums[chain * panels + j]]))
                following = builder.add(feature, number(1))
                feature.add_incoming(following, body)
                for value, score in zip(sums, scores, strict=True):
                    value.add_incoming(score, body)
                builder.cbranch(builder.icmp_signed("<", following, dimension), body, done)
                builder.position_at_end(done)
                for chain in range(chains):
                    best_row = builder.gep(best_rows, [number(chain)])
                    where_row = builder.gep(where_rows, [number(chain)])
                    best = builder.load(best_row, align=size)
                    where = builder.load(where_row, align=4)
                    for j in range(panels):
                        score = scores[chain * panels + j]
                        better = builder.fcmp_ordered(">", score, best)
                        best = builder.select(better, score, best)
                        position = builder.trunc(builder.add(panel, number(j)), whole)
                        where = builder.select(better, _splat(builder, position, integers), where)
                    builder.store(best, best_row, align=size)
                    builder.store(where, where_row, align=4)
            return context.get_dummy_value()

        return signature, codegen

    return score


def one_pass(vectors: int, update: bool, product: bool):
    """A function that passes once over `vectors` registers' worth of columns of a matrix, row by row.

    update: rows[m] += steps[m] * along; product: out = sum_m factors[m] * rows[m], of the updated rows.
    """

    @intrinsic
    def run(typing_context, rows, count, length, first, steps, along, factors, out):
        """rows (count, length); the columns from `first` on; steps and factors (count,), along and out (length,)."""
        signature = types.void(rows, types.intp, types.intp, types.intp, steps, along, factors, out)
        double = rows.dtype == types.float64
        size = 8 if double else 4
        lanes = REGISTER_BYTES // size
        real = ir.DoubleType() if double else ir.FloatType()
        vector = ir.VectorType(real, lanes)

        def codegen(context, builder, signature, values):
            index, number, data = _words(context, builder, signature, values)

            def columns(pointer):
                """Pointers to the registers' worth of columns that start at `pointer`."""
                start = builder.bitcast(pointer, vector.as_pointer())
                return [builder.gep(start, [number(j)]) for j in range(vectors)]

            _, count, length, first = values[:4]
            fma = _fma(builder, lanes, size)
            zero = ir.Constant(vector, [0.0] * lanes)
            pushed = [builder.load(place, align=size) for place in columns(builder.gep(data(5), [first]))] if update else []
            matrix, steps, factors = data(0), data(4), data(6)
            entry = builder.block
            head, body, done = (builder.append_basic_block(name) for name in ("rows", "row", "passed"))
            builder.branch(head)
            builder.position_at_end(head)
            row = builder.phi(index)
            row.add_incoming(number(0), entry)
            sums = [builder.phi(vector) for _ in range(vectors)] if product else []
            for value in sums:
                value.add_incoming(zero, entry)
            builder.cbranch(builder.icmp_signed("<", row, count), body, done)
            builder.position_at_end(body)
            places = columns(builder.gep(matrix, [builder.add(builder.mul(row, length), first)]))
            loaded = [builder.load(place, align=size) for place in places]
            if update:
                step = _splat(builder, builder.load(builder.gep(steps, [row])), vector)
                loaded = [builder.call(fma, [step, one, value]) for one, value in zip(pushed, loaded, strict=True)]
                for value, place in zip(loaded, places, strict=True):
                    builder.store(value, place, align=size)
            if product:
                factor = _splat(builder, builder.load(builder.gep(factors, [row])), vector)
                for value, total in zip(loaded, sums, strict=True):
                    total.add_incoming(builder.call(fma, [factor, value, total]), body)
            row.add_incoming(builder.add(row, number(1)), body)
            builder.branch(head)
            builder.position_at_end(done)
            if product:
                for total, place in zip(sums, columns(builder.gep(data(7), [first])), strict=True):
                    builder.store(total, place, align=size)
            return context.get_dummy_value()

        return signature, codegen

    return run
